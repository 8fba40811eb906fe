package meter

import (
	"testing"
	"time"
)

// Whoever comes after others waits until they have had theirs.
func TestMeterEstimates(t *testing.T) {
	for _, test := range []struct {
		rate     string
		spent    int64
		ahead, n int64
		want     time.Duration
	}{
		{"4/10s burst 4", 0, 3, 1, 0},
		{"4/10s burst 4", 0, 4, 1, 10 * sec},
		{"4/10s burst 4", 0, 7, 1, 10 * sec},
		{"4/10s burst 4", 0, 7, 2, 20 * sec},
		{"4/10s burst 4", 2, 1, 1, 0},
		{"4/10s burst 4", 2, 2, 1, 10 * sec},
		{"4/10s burst 1", 0, 0, 1, 0},
		{"4/10s burst 1", 0, 2, 1, 5 * sec},
		{"4/10s burst 2", 1, 0, 3, 2500 * time.Millisecond}, // a cost above the burst needs it full
		{"2/s bucket 4", 0, 3, 1, 0},
		{"2/s bucket 4", 0, 4, 1, sec / 2},
		{"2/s bucket 4", 0, 8, 1, 5 * sec / 2},
		{"2/s bucket 4", 4, 0, 9, 2 * sec},
		{"10/d burst 10 align UTC", 0, 9, 1, 0},
		{"10/d burst 10 align UTC", 0, 10, 1, 24 * time.Hour},
		{"10/d burst 10 align UTC", 8, 2, 1, 12 * time.Hour},
		{"2/s warmup 4s", 0, 3, 1, 3 * sec / 2},
	} {
		s := newScript(t, test.rate)
		if test.spent > 0 {
			s.take(test.spent)
		}
		if got := s.m.ETA(s.now, test.ahead, test.n).Until(s.now); got != test.want {
			t.Errorf("%s, %d spent: %d after %d others in %v, want %v", test.rate, test.spent, test.n, test.ahead, got, test.want)
		}
	}
}

// Units whose answers take long count for longer than their window, and so do those that
// come after them: an estimate is later by about as much as answers take.
func TestEstimatesCountUnitsUnderWay(t *testing.T) {
	for _, test := range []struct {
		spent, held, ahead int64
		want               time.Duration
	}{
		{4, 0, 0, 10 * sec},
		{3, 1, 0, 10*sec + 10*sec/3}, // a third of what is spent is under way: so answers take a third of the window
		{2, 2, 0, 20 * sec},
		{2, 2, 4, 40 * sec},
		{2, 1, 0, 0},
	} {
		s := newScript(t, "4/10s burst 4")
		s.take(test.spent)
		if test.held > 0 {
			s.hold(test.held)
		}
		if got := s.m.ETA(s.now, test.ahead, 1).Until(s.now); (got - test.want).Abs() > time.Microsecond {
			t.Errorf("%d spent, %d under way, %d ahead: in %v, want %v", test.spent, test.held, test.ahead, got, test.want)
		}
	}
}

// A pause saves nothing up: one unit is there when it ends. Ended before its
// time, it leaves what was there, one at most.
func TestMeterIsQuietInAPause(t *testing.T) {
	second := func(d time.Duration) Instant { return Instant(1 + d) }
	s := newScript(t, "1/s bucket 10")
	s.m.Drain(s.now, second(5*sec))
	s.at(5 * sec)
	s.want(1, 9*sec, 0, sec)
	s.at(14 * sec)
	s.want(10, 0)

	s.m.Drain(s.now, second(19*sec))
	s.at(15 * sec)
	s.m.Drain(s.now, second(24*sec)) // prolonged
	s.at(16 * sec)
	s.m.Resume(s.now)
	s.want(1, 9*sec, 0, sec)
	s.m.Resume(s.now) // once
	s.want(1, 9*sec, 0, sec)

	s.at(20 * sec) // 5 are there
	s.take(5)
	s.m.Drain(s.now, second(22*sec)) // 2 would be
	s.at(21 * sec)
	s.m.Resume(s.now) // gives back no more than it took
	s.want(1, 9*sec, 0, sec)

	s.at(30 * sec)
	s.want(10, 0)
	s.m.Drain(s.now, second(31*sec))
	s.at(31 * sec)
	s.want(1, 9*sec, 0)
	s.m.Resume(s.now) // over already
	s.want(1, 9*sec, 0, sec)
	s.take(1)
	s.m.Resume(s.now)
	s.want(0, 10*sec, sec)
	s.m.Drain(s.now, second(32*sec)) // nothing to take
	s.m.Resume(s.now)
	s.want(0, 10*sec, sec)

	s.at(60 * sec)
	s.m.Drain(s.now, second(61*sec+sec/2))
	s.at(61*sec + sec/2)
	s.want(1, 9*sec, 0, sec)
	s.take(1)
	s.at(62 * sec)
	s.m.Drain(s.now, second(62*sec+sec/2)) // half a unit is there, and it is still then
	s.at(62*sec + sec/2)
	s.want(1, 9*sec, 0, sec)

	s.at(80 * sec)
	s.m.Drain(s.now, second(82*sec))
	s.at(82 * sec)
	s.take(2)                              // one is owed
	s.m.Drain(s.now, second(84*sec+sec/2)) // begins when the other ends, and takes half a unit
	s.at(82*sec + sec/2)
	s.m.Resume(s.now)
	s.want(0, 10*sec+sec/2, 3*sec/2)
}

// Under other terms what is in use stays in use.
func TestMeterUnderOtherTerms(t *testing.T) {
	for _, test := range []struct {
		from        string
		spent, held int64
		after       time.Duration
		to          string
		left        float64
		full        time.Duration
	}{
		{"4/10s burst 4", 3, 0, 0, "8/10s burst 8", 5, 10 * sec},
		{"4/10s burst 4", 3, 0, 0, "8/10s burst 4", 1, 10 * sec},
		{"4/10s burst 4", 2, 1, 0, "8/10s burst 4", 1, 10 * sec},
		{"4/10s burst 4", 3, 0, 10 * sec, "8/10s burst 4", 4, 0},
		{"8/10s burst 4", 3, 0, 0, "4/10s burst 4", 1, 10 * sec},
		{"8/10s burst 2", 2, 0, 0, "8/10s burst 4", 2, 10 * sec},
		{"8/10s burst 4", 4, 0, 0, "8/10s burst 2", 0, 10 * sec},
		{"2/s bucket 4", 3, 0, 0, "2/s bucket 10", 7, 3 * sec / 2},
		{"2/s bucket 4", 3, 0, sec, "2/s bucket 10", 9, sec / 2},
		{"2/s bucket 10", 6, 0, 0, "2/s bucket 4", 0, 3 * sec},
		{"10/d burst 10 align UTC", 3, 0, 0, "20/d burst 20 align UTC", 17, 12 * time.Hour},
		{"10/d burst 10 align UTC", 3, 0, 0, "20/d burst 4 align UTC", 4, 12 * time.Hour},
	} {
		s := newScript(t, test.from)
		s.take(test.spent)
		s.hold(test.held)
		s.at(test.after)
		s.m.Change(s.now, rateOf(test.to))
		t.Logf("%+v", test)
		s.want(test.left, test.full)
	}
	s := newScript(t, "2/s warmup 4s")
	s.m.Change(s.now, rateOf("2/s warmup 8s"))
	if !s.m.State(s.now).Idle {
		t.Error("one that was cold is warm under other terms")
	}
}

// A meter in place of another of the same unit begins with what that one saw.
func TestMeterInherits(t *testing.T) {
	for _, test := range []struct {
		from        string
		spent, held int64
		after       time.Duration
		to          string
		left        float64
		full        time.Duration
		gone        time.Duration // when what was held has left; zero: not asked
	}{
		{"4/10s burst 4", 3, 0, 0, "8/20s burst 8", 5, 20 * sec, 0},
		{"4/10s burst 4", 2, 1, sec / 2, "8/20s burst 8", 5, 20 * sec, 22 * sec}, // under way
		{"4/10s burst 4", 2, 1, 3 * sec / 2, "8/20s burst 8", 5, 19*sec + sec/2, 21 * sec},
		{"4/10s burst 4", 2, 1, 5 * sec, "8/20s burst 8", 5, 16 * sec, 21 * sec},
		{"20/20s burst 20", 2, 1, 3 * sec / 2, "8/10s burst 8", 5, 10 * sec, 11*sec + sec/2}, // for longer than is allowed now
		{"4/10s burst 4", 3, 0, 5 * sec, "8/20s burst 8", 5, 15 * sec, 0},
		{"4/10s burst 4", 3, 0, 10 * sec, "8/20s burst 8", 8, 0, 0},
		{"4/10s burst 4", 3, 0, 10 * sec, "8/20s burst 4", 4, 0, 0},
		{"4/10s burst 4", 3, 0, 5 * sec, "8/4s burst 8", 8, 0, 0},
		{"4/10s burst 4", 3, 0, 0, "8/20s burst 4", 1, 20 * sec, 0},
		{"4/10s burst 4", 3, 0, 0, "1/s bucket 10", 7, 3 * sec, 0},
		{"4/10s burst 4", 1, 2, 0, "1/s bucket 10", 7, 3 * sec, 0},
		{"4/10s burst 4", 3, 0, 0, "1/s bucket 2", 0, 2 * sec, 0},
		{"2/s bucket 4", 3, 0, 0, "8/20s burst 8", 8, 0, 0},
		{"2/s bucket 4", 3, 0, 0, "1/s bucket 10", 7, 3 * sec, 0},
		{"2/s bucket 4", 3, 0, sec, "1/s bucket 10", 9, sec, 0},
		{"8/8s burst 2", 2, 0, sec, "1/s bucket 10", 8, 2 * sec, 0},
		{"10/d burst 10 align UTC", 3, 0, 0, "8/20s burst 8", 8, 0, 0},
		{"10/d burst 10 align UTC", 3, 0, 0, "1/s bucket 10", 10, 0, 0},
		{"4/10s burst 4", 3, 0, 0, "10/d burst 10 align UTC", 10, 0, 0},
		{"4/10s burst 4", 3, 0, 0, "24/d burst 4 align UTC", 1, 3 * time.Hour, 0},
	} {
		old := newScript(t, test.from)
		old.take(test.spent)
		old.hold(test.held)
		s := newScript(t, test.to)
		s.at(test.after)
		s.m = NewRated(s.now, s.m.Rate, s.clock)
		s.m.Inherit(s.now, old.m)
		t.Logf("%+v", test)
		s.want(test.left, test.full)
		if test.gone > 0 {
			s.at(test.gone - 1)
			s.want(8-float64(test.held), 1)
			s.at(test.gone)
			s.want(8, 0)
		}
	}
}
