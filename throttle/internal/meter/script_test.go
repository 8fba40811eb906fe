package meter

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// script drives one rate's meter through a story in which every figure is known.
type script struct {
	t      *testing.T
	m      *Rated
	clock  *Wall
	now    Instant
	grants []scriptGrant
	asked  int
}

type scriptGrant struct {
	n                 int64
	mark              Token
	granted, answered Instant // answered is zero as long as it is held
}

// newScript begins at the first instant, at noon of 2026-01-15 UTC.
func newScript(t *testing.T, rate string) *script {
	noon := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	s := &script{t: t, clock: wallAt(noon.Add(-1)), now: 1}
	s.m = NewRated(s.now, rateOf(rate), s.clock)
	return s
}

// at moves on to d after the beginning.
func (s *script) at(d time.Duration) { s.now = Instant(1 + d) }

func (s *script) take(n int64) (grant int) { return s.charge(n, false) }

func (s *script) hold(n int64) (grant int) { return s.charge(n, true) }

func (s *script) charge(n int64, held bool) int {
	g := scriptGrant{n: n, mark: s.m.Take(s.now, n, held), granted: s.now}
	if !held {
		g.answered = s.now
	}
	s.grants = append(s.grants, g)
	return len(s.grants) - 1
}

func (s *script) answered(grant int) {
	g := &s.grants[grant]
	s.m.Answered(s.now, g.n, g.mark, g.granted)
	g.answered = s.now
}

func (s *script) back(grant int, n int64) {
	g := s.grants[grant]
	s.m.Return(s.now, n, g.mark, g.granted, g.answered)
}

// want compares what is left, the time until everything is there again, and
// the waits for one unit, for two, and so on. Each answer must be right also
// when it is the first.
func (s *script) want(left float64, full time.Duration, waits ...time.Duration) {
	s.t.Helper()
	ask := []func(){
		func() {
			v := s.m.State(s.now)
			if math.Abs(v.Left-left) > 1e-6 || v.Full.Until(s.now) != full {
				s.t.Errorf("at %v: %v left and full in %v, want %v and %v", time.Duration(s.now-1), v.Left, v.Full.Until(s.now), left, full)
			}
		},
		func() {
			if got := s.m.State(s.now).Units(); got != int64(left+1e-6) {
				s.t.Errorf("at %v: room for %d, want %v", time.Duration(s.now-1), got, left)
			}
		},
		func() {
			if s.m.State(s.now).Idle != (full == 0) {
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
		if got := s.m.At(s.now, int64(i+1)).Until(s.now); got != want {
			s.t.Errorf("at %v: %d units in %v, want %v", time.Duration(s.now-1), i+1, got, want)
		}
	}
}

const sec = time.Second

// rateOf reads a rate such as "4/10s burst 4 align UTC": of requests, with a
// burst of a tenth if it says none.
func rateOf(text string) *Rate {
	words := strings.Fields(text)
	limit, per, _ := strings.Cut(words[0], "/")
	s := Spec{Unit: Requests, Limit: whole(limit), Per: length(per)}
	s.Burst = max(1, s.Limit/10)
	for words = words[1:]; len(words) > 0; words = words[2:] {
		switch value := words[1]; words[0] {
		case "burst":
			s.Burst = whole(value)
		case "bucket":
			s.Burst, s.Bucket = whole(value), true
		case "warmup":
			s.Burst, s.WarmUp = 1, length(value)
		case "align":
			place, err := time.LoadLocation(value)
			if err != nil {
				panic(err)
			}
			s.Align = place
		default:
			panic(text)
		}
	}
	return NewRate(s)
}

func whole(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}

// length reads a time such as "10s", "m" or "d".
func length(text string) time.Duration {
	n, unit := text[:len(text)-1], text[len(text)-1]
	if n == "" {
		n = "1"
	}
	return time.Duration(whole(n)) * map[byte]time.Duration{'s': sec, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[unit]
}
