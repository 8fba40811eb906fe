package meter

import (
	"testing"
	"time"
)

// What is certain: nobody goes before a pause is over, and then one at a time at the
// rate. What a pause has taken that may prove too long is not missed.
func TestMeterIsSure(t *testing.T) {
	for _, test := range []struct {
		rate          string
		spent         int64
		pause, from   time.Duration // drained until; nothing goes before
		ahead, n      int64
		want, whenNot time.Duration // Sure, and At, which misses what the pause took
	}{
		{"2/s bucket 4", 0, 0, 0, 0, 1, 0, 0},
		{"2/s bucket 4", 4, 0, 0, 0, 1, sec / 2, sec / 2},
		{"2/s bucket 4", 4, 0, 0, 3, 1, 2 * sec, sec / 2},
		{"2/s bucket 4", 0, 10 * sec, 0, 0, 4, 0, 10*sec + 3*sec/2}, // it may end now
		{"2/s bucket 4", 3, 10 * sec, 0, 0, 1, 0, 10 * sec},
		{"2/s bucket 4", 4, 10 * sec, 0, 0, 1, sec / 2, 10 * sec},
		{"2/s bucket 4", 0, 0, 10 * sec, 0, 1, 0, 0},            // a caller knows of the pause
		{"2/s bucket 4", 0, 0, 10 * sec, 2, 1, 10*sec + sec, 0}, // and after it they go one by one
		{"2/s bucket 4", 0, 0, 10 * sec, 0, 2, 10*sec + sec/2, 0},
		{"2/s bucket 4", 0, 0, 10 * sec, 0, 3, 10*sec + sec, 0},
		{"2/s bucket 4", 0, 0, 10 * sec, 0, 9, 10*sec + 3*sec/2, 0}, // as many as it holds
		{"4/10s burst 4", 4, 0, 0, 0, 1, 10 * sec, 10 * sec},
		{"4/10s burst 4", 0, 0, 5 * sec, 3, 1, 0, 0},
		{"4/10s burst 4", 0, 0, 0, 4, 1, 10 * sec, 0},
		{"10/d burst 10 align UTC", 10, 0, 0, 0, 1, 12 * time.Hour, 12 * time.Hour},
	} {
		s := newScript(t, test.rate)
		if test.spent > 0 {
			s.take(test.spent)
		}
		if test.pause > 0 {
			s.m.Drain(s.now, s.now.Add(test.pause))
		}
		left := s.m.State(s.now).Left
		if got := s.m.Sure(s.now, s.now.Add(test.from), test.ahead, test.n).Until(s.now); got != test.want {
			t.Errorf("%s, %d spent, drained for %v: %d after %d others surely not within %v of a pause for %v, want %v", test.rate, test.spent, test.pause, test.n, test.ahead, got, test.from, test.want)
		}
		if got := s.m.At(s.now, test.n).Until(s.now); got != test.whenNot {
			t.Errorf("%s, %d spent, drained for %v: %d at %v, want %v", test.rate, test.spent, test.pause, test.n, got, test.whenNot)
		}
		if got := s.m.State(s.now).Left; got != left {
			t.Errorf("%s: to ask changed %v into %v", test.rate, left, got)
		}
	}
}
