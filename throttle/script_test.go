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
	n                 int64
	mark              mark
	granted, answered instant // answered is zero as long as it is held
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
	g := scriptGrant{n: n, mark: s.m.take(s.now, n, held), granted: s.now}
	if !held {
		g.answered = s.now
	}
	s.grants = append(s.grants, g)
	return len(s.grants) - 1
}

func (s *script) answered(grant int) {
	g := &s.grants[grant]
	s.m.answered(s.now, g.n, g.mark, g.granted)
	g.answered = s.now
}

func (s *script) back(grant int, n int64) {
	g := s.grants[grant]
	s.m.back(s.now, n, g.mark, g.granted, g.answered)
}

// want compares what is left, the time until everything is there again, and
// the waits for one unit, for two, and so on. Each answer must be right also
// when it is the first.
func (s *script) want(left float64, full time.Duration, waits ...time.Duration) {
	s.t.Helper()
	ask := []func(){
		func() {
			v := s.m.view(s.now)
			if math.Abs(v.left-left) > 1e-6 || v.full.Until(s.now) != full {
				s.t.Errorf("at %v: %v left and full in %v, want %v and %v", time.Duration(s.now-1), v.left, v.full.Until(s.now), left, full)
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
		if got := s.m.at(s.now, int64(i+1)).Until(s.now); got != want {
			s.t.Errorf("at %v: %d units in %v, want %v", time.Duration(s.now-1), i+1, got, want)
		}
	}
}

const sec = time.Second
