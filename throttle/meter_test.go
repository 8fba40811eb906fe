package throttle

import (
	"math"
	"testing"
	"time"
)

// script drives one rate's meter through a story in which every figure is known.
type script struct {
	t      *testing.T
	m      *rated
	clock  *wallClock
	now    instant
	grants []scriptGrant
	asked  int
}

type scriptGrant struct {
	n    int64
	mark mark
	at   instant
	held bool
}

// newScript begins at the first instant, at noon of 2026-01-15 UTC.
func newScript(t *testing.T, rate string) *script {
	noon := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	s := &script{t: t, clock: &wallClock{zero: noon.UnixNano() - 1}, now: 1}
	s.m = newRated(s.now, newRateSpec(MustParseBudget(rate).Rates[0]), s.clock)
	return s
}

// at moves on to d after the beginning.
func (s *script) at(d time.Duration) { s.now = instant(1 + d) }

func (s *script) take(n int64) (grant int) { return s.charge(n, false) }
func (s *script) hold(n int64) (grant int) { return s.charge(n, true) }

func (s *script) charge(n int64, held bool) int {
	s.grants = append(s.grants, scriptGrant{n, s.m.take(s.now, n, held), s.now, held})
	return len(s.grants) - 1
}

func (s *script) answered(grant int) {
	g := &s.grants[grant]
	s.m.answered(s.now, g.n, g.mark, g.at)
	g.held, g.at = false, s.now
}

func (s *script) back(grant int, n int64) {
	g := s.grants[grant]
	s.m.back(s.now, n, g.mark, g.at, g.held)
}

// want compares what is left, the time until everything is there again, and
// the waits for one unit, for two, and so on. Each answer must be right also
// when it is the first.
func (s *script) want(left float64, full time.Duration, waits ...time.Duration) {
	s.t.Helper()
	ask := []func(){
		func() {
			v := s.m.view(s.now)
			if math.Abs(v.left-left) > 1e-6 || v.full.until(s.now) != full {
				s.t.Errorf("at %v: %v left and full in %v, want %v and %v", time.Duration(s.now-1), v.left, v.full.until(s.now), left, full)
			}
		},
		func() {
			if got := s.m.room(s.now); got != int64(left+1e-6) {
				s.t.Errorf("at %v: room for %d, want %v", time.Duration(s.now-1), got, left)
			}
		},
		func() {
			if s.m.full(s.now) != (full == 0) {
				s.t.Errorf("at %v: full is %t, and that in %v", time.Duration(s.now-1), full != 0, full)
			}
		},
		func() { s.wait(waits...) },
	}
	for i := range ask {
		ask[(s.asked+i)%len(ask)]()
	}
	s.asked++
}

func (s *script) wait(waits ...time.Duration) {
	s.t.Helper()
	for i, want := range waits {
		if got := s.m.at(s.now, int64(i+1)).until(s.now); got != want {
			s.t.Errorf("at %v: %d units in %v, want %v", time.Duration(s.now-1), i+1, got, want)
		}
	}
}

const sec = time.Second

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

// A held unit counts until Per after its answer, whenever that comes.
func TestMeterOfAWindowHolds(t *testing.T) {
	s := newScript(t, "4/10s burst 4")
	g := s.hold(2)
	s.want(2, 10*sec, 0, 0, 10*sec, 10*sec)
	s.at(30 * sec)
	s.want(2, 10*sec, 0, 0, 10*sec, 10*sec)
	s.take(1)
	s.want(1, 10*sec, 0, 10*sec, 10*sec, 10*sec)
	s.at(33 * sec)
	s.want(1, 10*sec, 0, 7*sec, 10*sec, 10*sec) // for what is held it assumes that the answer comes now
	s.answered(g)
	s.want(1, 10*sec, 0, 7*sec, 10*sec, 10*sec)
	s.at(40 * sec)
	s.want(2, 3*sec, 0, 0, 3*sec, 3*sec)
	s.back(g, 1)
	s.want(3, 3*sec, 0, 0, 0, 3*sec)
	s.back(g, 1)
	s.want(4, 0, 0, 0, 0, 0)
	s.back(s.hold(4), 4)
	s.want(4, 0, 0, 0, 0, 0)
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
		if n := len(s.m.window.log); n > 2*exact {
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
	s.m.respec(s.now, newRateSpec(MustParseBudget("64/1h burst 64").Rates[0]))
	for i := range 1000 {
		s.at(time.Duration(i) * time.Millisecond)
		s.answered(i)
		if n := len(s.m.window.log); n > 2*exact {
			t.Fatalf("%d entries", n)
		}
	}
	for _, d := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 998 * time.Millisecond} {
		s.at(time.Hour + d)
		still := int64(999 - d/time.Millisecond)
		s.want(float64(max(0, 64-still)), 999*time.Millisecond-d)
		if n := s.m.window.count; n < still {
			t.Errorf("%v after the hour of the first %d are counted, want at least %d", d, n, still)
		}
	}
	s.at(time.Hour + sec)
	s.want(64, 0)
}

// A bucket gives what has flowed in, and a cost above its size when it is full.
func TestMeterOfABucket(t *testing.T) {
	s := newScript(t, "2/s bucket 4")
	s.want(4, 0, 0, 0, 0, 0, 0, 0)
	s.take(4)
	s.want(0, 2*sec, sec/2, sec, 3*sec/2, 2*sec, 2*sec)
	s.at(sec / 4)
	s.want(0.5, 7*sec/4, sec/4, 3*sec/4, 5*sec/4, 7*sec/4, 7*sec/4)
	s.at(2 * sec)
	s.want(4, 0, 0, 0, 0, 0, 0)
	s.take(6) // 2 owed
	s.want(0, 3*sec, 3*sec/2, 2*sec, 5*sec/2, 3*sec)
	s.at(10 * sec)
	s.want(4, 0)
	g := s.take(3)
	s.at(11 * sec)
	s.want(3, sec/2, 0, 0, 0, sec/2)
	s.back(g, 3) // two of them have flowed off
	s.want(4, 0)
	s.at(20 * sec)
	g = s.take(2)
	s.at(21 * sec)
	s.take(4)
	s.back(g, 2) // all of it has flowed off
	s.want(0, 2*sec, sec/2)
	s.at(30 * sec)
	g = s.take(4)
	s.at(31 * sec)
	s.back(g, 1)
	s.want(3, sec/2)
	for range 4 { // whatever is asked first, a second has passed
		s.at(time.Duration(s.now-1) + 10*sec)
		s.take(4)
		s.at(time.Duration(s.now-1) + sec)
		s.want(2, sec, 0, 0, sec/2)
	}
	for range 4 {
		s.at(time.Duration(s.now-1) + 10*sec)
		s.take(4)
		s.at(time.Duration(s.now-1) + 10*sec)
		s.want(4, 0, 0, 0, 0, 0)
	}
	if v := newScript(t, "5/s bucket 1").m.view(1); v.limit != 1 {
		t.Errorf("%d at once of a bucket of 1", v.limit)
	}
	if !s.m.fits(1<<40) || newScript(t, "4/s").m.fits(5) || !newScript(t, "4/s").m.fits(4) {
		t.Error("any cost fits a bucket some time, and up to Limit a window")
	}
}

// What flows in piece by piece is as much as what flows in at once.
func TestMeterOfABucketLosesNothing(t *testing.T) {
	s := newScript(t, "1/d bucket 1")
	day := 24 * time.Hour
	for n := 1; n <= 64; n++ {
		if day%time.Duration(n) != 0 {
			continue
		}
		s.take(1)
		from := time.Duration(s.now - 1)
		for i := range n {
			s.at(from + day/time.Duration(n)*time.Duration(i+1))
			s.m.view(s.now)
		}
		s.wait(0)
	}
}

// A rate with a burst is a bucket and a window, and both must have room.
func TestMeterOfABurst(t *testing.T) {
	s := newScript(t, "4/4s burst 2")
	s.want(2, 0, 0, 0, 0, 0)
	s.take(2)
	s.want(0, 4*sec, sec, 2*sec, 4*sec, 4*sec)
	s.at(2 * sec)
	s.want(2, 2*sec, 0, 0, 2*sec, 2*sec)
	s.take(2)
	s.want(0, 4*sec, 2*sec, 2*sec, 4*sec, 4*sec)
	s.at(4 * sec)
	s.want(2, 2*sec, 0, 0, 2*sec, 2*sec)
	s.at(6 * sec)
	s.want(2, 0, 0, 0, 0, 0)
	g := s.hold(2)
	s.back(g, 2)
	s.want(2, 0, 0, 0, 0, 0)
}

// A quota of a day is there again at midnight, and what is under way then
// counts on both sides.
func TestMeterOfADay(t *testing.T) {
	s := newScript(t, "10/d burst 10 align UTC")
	s.want(10, 0, 0)
	early := s.take(3)
	late := s.hold(2)
	s.want(5, 12*time.Hour, 0, 0, 0, 0, 0, 12*time.Hour)
	s.back(early, 1)
	s.want(6, 12*time.Hour)
	s.at(12*time.Hour - 1)
	s.want(6, 1, 0, 0, 0, 0, 0, 0, 1)
	s.at(12 * time.Hour)
	s.want(8, 24*time.Hour, 0, 0, 0, 0, 0, 0, 0, 0, 24*time.Hour)
	s.back(early, 2) // of the day before
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

	a, b := s.hold(3), s.hold(3)
	s.at(60 * time.Hour) // nobody looked at midnight
	s.answered(a)
	s.want(4, 24*time.Hour)
	s.at(84 * time.Hour)
	s.want(7, 24*time.Hour)
	s.back(b, 3)
	s.want(10, 0)
	c := s.hold(3)
	s.at(108 * time.Hour)
	s.back(c, 1)
	s.want(8, 24*time.Hour)
	for range 4 {
		s.grants[c].n = 2
		s.answered(c)
		s.at(time.Duration(s.now-1) + 24*time.Hour)
		s.want(10, 0, 0)
		c = s.hold(2)
	}
}

// A rate that warms up grants one unit after the other.
func TestMeterThatWarmsUp(t *testing.T) {
	s := newScript(t, "2/s warmup 4s")
	full := func(want bool) {
		t.Helper()
		if got := s.m.full(s.now); got != want {
			t.Errorf("at %v: full is %t", time.Duration(s.now-1), got)
		}
	}
	full(true)
	if n := s.m.room(s.now); n != 1 {
		t.Errorf("room for %d in a cold one, want 1", n)
	}
	g := s.take(1)
	full(false)
	s.wait(1375*time.Millisecond, 1375*time.Millisecond)
	if n := s.m.room(s.now); n != 0 {
		t.Errorf("room for %d just after, want none", n)
	}
	if got, want := s.m.eta(s.now, 2, 1).until(s.now), 2375*time.Millisecond; got != want {
		t.Errorf("after two others in %v, want %v", got, want)
	}
	s.at(sec)
	s.back(g, 1) // what is left of its time
	s.wait(0, 0)
	if n := s.m.room(s.now); n != 1 {
		t.Errorf("room for %d after it came back, want 1", n)
	}
	g = s.take(1)
	s.wait(1125*time.Millisecond, 1125*time.Millisecond)
	s.at(sec + 1125*time.Millisecond)
	s.back(g, 1) // too late
	s.wait(0, 0)
	if n := s.m.room(s.now); n != 1 {
		t.Errorf("room for %d when its time is up, want 1", n)
	}
	full(false)
	s.at(time.Minute)
	full(true)
}

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
		if got := s.m.eta(s.now, test.ahead, test.n).until(s.now); got != test.want {
			t.Errorf("%s, %d spent: %d after %d others in %v, want %v", test.rate, test.spent, test.n, test.ahead, got, test.want)
		}
	}
}

// A pause saves nothing up: one unit is there when it ends. Ended before its
// time, it leaves what was there, one at most.
func TestMeterIsQuietInAPause(t *testing.T) {
	second := func(d time.Duration) instant { return instant(1 + d) }
	s := newScript(t, "1/s bucket 10")
	s.m.quiet(s.now, second(5*sec))
	s.at(5 * sec)
	s.want(1, 9*sec, 0, sec)
	s.at(14 * sec)
	s.want(10, 0)

	s.m.quiet(s.now, second(19*sec))
	s.at(15 * sec)
	s.m.quiet(s.now, second(24*sec)) // prolonged
	s.at(16 * sec)
	s.m.wake(s.now)
	s.want(1, 9*sec, 0, sec)
	s.m.wake(s.now) // once
	s.want(1, 9*sec, 0, sec)

	s.at(20 * sec) // 5 are there
	s.take(5)
	s.m.quiet(s.now, second(22*sec)) // 2 would be
	s.at(21 * sec)
	s.m.wake(s.now) // gives back no more than it took
	s.want(1, 9*sec, 0, sec)

	s.at(30 * sec)
	s.want(10, 0)
	s.m.quiet(s.now, second(31*sec))
	s.at(31 * sec)
	s.want(1, 9*sec, 0)
	s.m.wake(s.now) // over already
	s.want(1, 9*sec, 0, sec)
	s.take(1)
	s.m.wake(s.now)
	s.want(0, 10*sec, sec)
	s.m.quiet(s.now, second(32*sec)) // nothing to take
	s.m.wake(s.now)
	s.want(0, 10*sec, sec)

	s.at(60 * sec)
	s.m.quiet(s.now, second(61*sec+sec/2))
	s.at(61*sec + sec/2)
	s.want(1, 9*sec, 0, sec)
	s.take(1)
	s.at(62 * sec)
	s.m.quiet(s.now, second(62*sec+sec/2)) // half a unit is there, and it is still then
	s.at(62*sec + sec/2)
	s.want(1, 9*sec, 0, sec)

	s.at(80 * sec)
	s.m.quiet(s.now, second(82*sec))
	s.at(82 * sec)
	s.take(2)                              // one is owed
	s.m.quiet(s.now, second(84*sec+sec/2)) // begins when the other ends, and takes half a unit
	s.at(82*sec + sec/2)
	s.m.wake(s.now)
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
		s.m.respec(s.now, newRateSpec(MustParseBudget(test.to).Rates[0]))
		t.Logf("%+v", test)
		s.want(test.left, test.full)
	}
	s := newScript(t, "2/s warmup 4s")
	s.m.respec(s.now, newRateSpec(MustParseBudget("2/s warmup 8s").Rates[0]))
	if !s.m.full(s.now) {
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
	}{
		{"4/10s burst 4", 3, 0, 0, "8/20s burst 8", 5, 20 * sec},
		{"4/10s burst 4", 2, 1, 5 * sec, "8/20s burst 8", 5, 20 * sec},
		{"4/10s burst 4", 3, 0, 5 * sec, "8/20s burst 8", 5, 15 * sec},
		{"4/10s burst 4", 3, 0, 10 * sec, "8/20s burst 8", 8, 0},
		{"4/10s burst 4", 3, 0, 10 * sec, "8/20s burst 4", 4, 0},
		{"4/10s burst 4", 3, 0, 5 * sec, "8/4s burst 8", 8, 0},
		{"4/10s burst 4", 3, 0, 0, "8/20s burst 4", 1, 20 * sec},
		{"4/10s burst 4", 3, 0, 0, "1/s bucket 10", 7, 3 * sec},
		{"4/10s burst 4", 1, 2, 0, "1/s bucket 10", 7, 3 * sec},
		{"4/10s burst 4", 3, 0, 0, "1/s bucket 2", 0, 2 * sec},
		{"2/s bucket 4", 3, 0, 0, "8/20s burst 8", 8, 0},
		{"2/s bucket 4", 3, 0, 0, "1/s bucket 10", 7, 3 * sec},
		{"2/s bucket 4", 3, 0, sec, "1/s bucket 10", 9, sec},
		{"8/8s burst 2", 2, 0, sec, "1/s bucket 10", 8, 2 * sec},
		{"10/d burst 10 align UTC", 3, 0, 0, "8/20s burst 8", 8, 0},
		{"10/d burst 10 align UTC", 3, 0, 0, "1/s bucket 10", 10, 0},
		{"4/10s burst 4", 3, 0, 0, "10/d burst 10 align UTC", 10, 0},
		{"4/10s burst 4", 3, 0, 0, "24/d burst 4 align UTC", 1, 3 * time.Hour},
	} {
		old := newScript(t, test.from)
		old.take(test.spent)
		old.hold(test.held)
		s := newScript(t, test.to)
		s.at(test.after)
		s.m = newRated(s.now, s.m.rateSpec, s.clock)
		s.m.inherit(s.now, old.m)
		t.Logf("%+v", test)
		s.want(test.left, test.full)
		if test.held > 0 && test.full == 20*sec {
			s.at(test.after + 20*sec - 1)
			s.want(8-float64(test.held), 1)
			s.at(test.after + 20*sec)
			s.want(8, 0)
		}
	}
}

// Instants do not overflow.
func TestInstants(t *testing.T) {
	for _, test := range []struct {
		t    instant
		d    time.Duration
		want instant
	}{{1, 2, 3}, {never, 0, never}, {never, 1, never}, {never - 5, 10, never}, {5, -3, 2}} {
		if got := test.t.add(test.d); got != test.want {
			t.Errorf("%d + %d: got %d, want %d", test.t, test.d, got, test.want)
		}
	}
	if got := never.until(5); got != unknown {
		t.Errorf("until never: %v", got)
	}
	if got := instant(5).until(8); got != 0 {
		t.Errorf("until what has passed: %v", got)
	}
}
