package meter

import (
	"testing"
	"time"
)

// A unit leaves a window Per after it was sent, to the nanosecond.
func TestMeterOfAWindow(t *testing.T) {
	s := newScript(t, "4/10s burst 4")
	s.want(4, 0, 0, 0, 0, 0)
	for i := range 3 {
		s.at(time.Duration(i) * sec)
		s.take(1)
	}
	s.want(1, 10*sec, 0, 8*sec, 9*sec, 10*sec)
	s.at(10*sec - 1)
	s.want(1, 2*sec+1, 0, 1, 1*sec+1, 2*sec+1)
	s.at(10 * sec)
	s.want(2, 2*sec, 0, 0, 1*sec, 2*sec)
	s.at(12 * sec)
	s.want(4, 0, 0, 0, 0, 0)
}

// A held unit counts until Per after its answer, or if that does not come in a
// tenth of Per, until Per after then.
func TestMeterOfAWindowHolds(t *testing.T) {
	s := newScript(t, "4/10s burst 4")
	late := s.hold(1)
	s.at(sec / 2)
	soon := s.hold(2)
	s.want(1, 10*sec, 0, 10*sec, 10*sec, 10*sec) // for what is held it assumes that the answer comes now
	s.at(sec - 1)
	s.answered(soon)
	s.want(1, 10*sec, 0, 10*sec, 10*sec, 10*sec)
	s.at(sec)
	s.want(1, 10*sec, 0, 10*sec-1, 10*sec-1, 10*sec)
	s.at(5 * sec)
	s.want(1, 6*sec, 0, 6*sec-1, 6*sec-1, 6*sec)
	s.answered(late) // changes nothing
	s.want(1, 6*sec, 0, 6*sec-1, 6*sec-1, 6*sec)
	s.back(soon, 1)
	s.want(2, 6*sec, 0, 0, 6*sec-1, 6*sec)
	s.at(11*sec - 1)
	s.want(3, 1, 0, 0, 0, 1)
	s.at(11 * sec)
	s.want(4, 0, 0, 0, 0, 0)
	s.back(late, 1) // it has left by itself
	s.back(s.hold(4), 4)
	s.want(4, 0, 0, 0, 0, 0)
}

// What comes back of a unit that was answered late, or not at all, is taken off
// where that was counted: a tenth of Per after its grant.
func TestMeterOfAWindowTakesBackWhatIsLate(t *testing.T) {
	for _, answered := range []bool{false, true} {
		s := newScript(t, "4/10s burst 4")
		g := s.hold(2)
		s.at(sec / 2)
		s.hold(1)
		s.at(3 * sec)
		if answered {
			s.answered(g)
		}
		s.take(1)
		s.want(0, 10*sec, 8*sec, 8*sec, 8*sec+sec/2, 10*sec)
		s.back(g, 1)
		s.want(1, 10*sec, 0, 8*sec, 8*sec+sec/2, 10*sec)
		s.back(g, 1)
		s.want(2, 10*sec, 0, 0, 8*sec+sec/2, 10*sec)
	}
}

// What comes back is taken off where it was counted, and nowhere else.
func TestMeterOfAWindowTakesBack(t *testing.T) {
	s := newScript(t, "4/10s burst 4")
	var g [4]int
	for i := range 3 {
		s.at(time.Duration(i) * sec)
		g[i] = s.take(1)
	}
	s.back(g[1], 1)
	s.want(2, 10*sec, 0, 0, 8*sec, 10*sec)
	s.back(g[2], 1)
	s.want(3, 8*sec, 0, 0, 0, 8*sec) // the one from the beginning is the last now
	g[3] = s.take(2)
	g[2] = s.take(1) // at the same instant
	s.want(0, 10*sec, 8*sec, 10*sec, 10*sec, 10*sec)
	s.back(g[3], 2)
	s.want(2, 10*sec, 0, 0, 8*sec, 10*sec)
	s.at(10 * sec)
	s.back(g[0], 1) // it has left by itself
	s.want(3, 2*sec, 0, 0, 0, 2*sec)
	s.at(12 * sec)
	s.back(g[2], 1)
	s.want(4, 0, 0, 0, 0, 0)
}

// Above 64 units a window has 64 parts, and a unit leaves with the last one of
// its part, never before its time.
func TestMeterOfALargeWindow(t *testing.T) {
	s := newScript(t, "6400/64s burst 6400")
	s.take(1)
	s.at(sec - 1)
	s.take(2)
	s.at(sec) // a second after the first: the next part
	g := s.take(4)
	s.at(64 * sec)
	s.want(6400-7, sec)
	s.at(65*sec - 2)
	s.want(6400-7, 2)
	s.at(65*sec - 1)
	s.want(6400-4, 1)
	s.at(65 * sec)
	s.want(6400, 0)
	s.back(g, 4)
	s.want(6400, 0)

	s.at(100 * sec)
	s.take(1)
	s.at(101 * sec)
	s.back(s.take(2), 2)
	s.at(101*sec + 500*time.Millisecond)
	s.take(4) // must not date the one of 100 s anew
	s.at(164 * sec)
	s.want(6400-4, 1500*time.Millisecond)
}

// 64 units are counted one by one.
func TestMeterOfAWindowIsExactUpTo64(t *testing.T) {
	s := newScript(t, "64/64s burst 64")
	s.take(1)
	s.at(1)
	s.take(1)
	s.at(64 * sec)
	s.want(63, 1)
}

// A log of units that came back, or of a limit that was lowered while many
// requests were under way, stays bounded, and nothing leaves it early.
func TestWindowsLogIsBounded(t *testing.T) {
	s := newScript(t, "64/1h burst 64")
	last := s.take(1)
	for i := range 1000 {
		s.at(time.Duration(i+1) * time.Millisecond)
		next := s.take(1)
		s.back(last, 1)
		last = next
		if n := len(s.m.window.sent.Entries); n > 2*Exact {
			t.Fatalf("%d entries for one unit", n)
		}
	}
	s.want(63, time.Hour)
	s.at(time.Hour + time.Second - 1)
	s.want(63, 1)
	s.at(time.Hour + time.Second)
	s.want(64, 0)

	s = newScript(t, "6400/1h burst 6400")
	for range 1000 {
		s.hold(1)
	}
	s.m.Change(s.now, rateOf("64/1h burst 64"))
	for i := range 1000 {
		s.at(time.Duration(i) * time.Millisecond)
		s.answered(i)
		if n := len(s.m.window.sent.Entries); n > 2*Exact {
			t.Fatalf("%d entries", n)
		}
	}
	for _, d := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 998 * time.Millisecond} {
		s.at(time.Hour + d)
		still := int64(999 - d/time.Millisecond)
		s.want(float64(max(0, 64-still)), 999*time.Millisecond-d)
		if n := s.m.window.used(); n < still {
			t.Errorf("%v after the hour of the first %d are counted, want at least %d", d, n, still)
		}
	}
	s.at(time.Hour + sec)
	s.want(64, 0)
}

// A quota of a day is there again at midnight, and what is under way then
// counts on both sides.
func TestMeterOfADay(t *testing.T) {
	s := newScript(t, "10/d burst 10 align UTC")
	s.want(10, 0, 0)
	early := s.take(3)
	s.at(12*time.Hour - 144*time.Minute)
	s.hold(1) // has reached the server by midnight
	s.at(11 * time.Hour)
	late := s.hold(2)
	s.want(4, time.Hour, 0, 0, 0, 0, time.Hour)
	s.back(early, 2)
	s.want(6, time.Hour)
	s.at(12*time.Hour - 1)
	s.want(6, 1, 0, 0, 0, 0, 0, 0, 1)
	s.at(12 * time.Hour)
	s.want(8, 24*time.Hour, 0, 0, 0, 0, 0, 0, 0, 0, 24*time.Hour)
	s.back(early, 1) // of the day before
	s.want(8, 24*time.Hour)
	s.back(late, 1)
	s.want(9, 24*time.Hour)
	s.grants[late].n = 1
	s.answered(late)
	s.want(9, 24*time.Hour)
	s.at(36*time.Hour - 1)
	g := s.take(4)
	s.want(5, 1)
	s.back(g, 4)
	s.want(9, 1)
	s.at(36 * time.Hour)
	s.want(10, 0, 0)
	first := s.take(1) // at midnight itself
	s.back(first, 1)
	s.want(10, 0)

	s.at(59 * time.Hour)
	a, b := s.hold(3), s.hold(3)
	s.at(61 * time.Hour) // nobody looked at midnight
	s.answered(a)
	s.want(4, 23*time.Hour)
	s.at(84 * time.Hour)
	s.want(10, 0)
	s.back(b, 3)
	s.want(10, 0)
	s.at(107 * time.Hour)
	c := s.hold(3)
	s.at(108 * time.Hour)
	s.back(c, 1)
	s.want(8, 24*time.Hour)
	for range 4 {
		s.grants[c].n = 2
		s.answered(c)
		s.at(time.Duration(s.now-1) + 23*time.Hour)
		s.want(8, time.Hour)
		s.at(time.Duration(s.now-1) + time.Hour)
		s.want(10, 0, 0)
		c = s.hold(2)
	}
}
