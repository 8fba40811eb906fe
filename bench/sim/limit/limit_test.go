package limit

import (
	"math/rand/v2"
	"testing"
	"time"
)

const s = time.Second

// families are all limiters, each with odd numbers.
func families(r *rand.Rand) map[string]func() Limiter {
	n, per := 1+r.IntN(9), time.Duration(1+r.IntN(5000))*time.Millisecond
	phase := time.Duration(r.Int64N(int64(per)))
	rate := float64(n) / per.Seconds()
	var others []time.Duration
	for t := phase; t < 60*s; t += time.Duration(r.Int64N(int64(per))) {
		others = append(others, t)
	}
	seed := r.Uint64()
	work := func(k int) time.Duration {
		return time.Duration(rand.New(rand.NewPCG(seed, uint64(k))).Int64N(int64(per)))
	}
	return map[string]func() Limiter{
		"bucket":            func() Limiter { return &Bucket{Rate: rate, Size: float64(n)} },
		"bucket, paced":     func() Limiter { return &Bucket{Rate: rate, Size: float64(n), Paced: true} },
		"stepped":           func() Limiter { return &Stepped{Add: 1 + n/2, Size: n, Every: per, Phase: phase} },
		"window by clock":   func() Limiter { return &Fixed{N: n, Per: per, Phase: phase} },
		"window from first": func() Limiter { return &Fixed{N: n, Per: per, First: true} },
		"log":               func() Limiter { return &Log{N: n, Per: per} },
		"log, counted":      func() Limiter { return &Log{N: n, Per: per, Counted: true} },
		"cells":             func() Limiter { return &Cells{N: n, M: 5, Per: per, Phase: phase} },
		"counter":           func() Limiter { return &Counter{N: n, Per: per, Phase: phase} },
		"counter, counted":  func() Limiter { return &Counter{N: n, Per: per, Phase: phase, Counted: true} },
		"slots":             func() Limiter { return &Slots{N: n, Work: work} },
		"two limits": func() Limiter {
			return &All{Of: []Limiter{&Bucket{Rate: rate, Size: float64(n)}, &Log{N: 3 * n, Per: 4 * per}}}
		},
		"two limits, charged": func() Limiter {
			return &All{Of: []Limiter{&Log{N: 2 * n, Per: per}, &Fixed{N: 3 * n, Per: 2 * per, Phase: phase}}, Charged: true}
		},
		"ban":    func() Limiter { return &Ban{Of: &Log{N: n, Per: per}, After: 2, Within: per, For: 3 * per} },
		"shared": func() Limiter { return &Shared{Of: &Log{N: 2 * n, Per: per}, Others: others} },
		"raised": func() Limiter {
			l := &Log{N: n, Per: per}
			return &Changing{Of: l, At: 7 * s, Change: func() { l.N = 3 * n }}
		},
		"lowered": func() Limiter {
			b := &Bucket{Rate: 3 * rate, Size: float64(n)}
			return &Changing{Of: b, At: 7 * s, Change: func() { b.Rate = rate }}
		},
		"restarts": func() Limiter { return &Fixed{N: n, Per: per, First: true, Again: true} },
	}
}

// first waits as Ready says until something is accepted, and takes it.
func first(t *testing.T, l Limiter, at time.Duration) time.Duration {
	t.Helper()
	for range 10000 {
		r := l.Ready(at)
		if r <= at {
			if _, ok := l.Take(at); !ok {
				t.Fatalf("ready at %v, and refused", at)
			}
			return at
		}
		at = r
	}
	t.Fatal("never ready")
	return 0
}

// each runs check for every family with many random numbers.
func each(t *testing.T, check func(t *testing.T, r *rand.Rand, make func() Limiter)) {
	for name := range families(rand.New(rand.NewPCG(0, 0))) {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 5))
				check(t, r, families(r)[name])
			}
		})
	}
}

// TestReadyIsTheFirstAcceptance holds that what Ready names is accepted and a
// microsecond before it nothing is.
func TestReadyIsTheFirstAcceptance(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, make func() Limiter) {
		l := make()
		at := time.Duration(0)
		for range 100 {
			at += time.Duration(r.Int64N(int64(300 * time.Millisecond)))
			early := l.Ready(at) - time.Microsecond
			if early > at {
				if l.Ready(early) <= early {
					t.Fatalf("room at %v, Ready had said %v", early, early+time.Microsecond)
				}
				at = early
			}
			at = first(t, l, at)
		}
	})
}

// TestSoonestIsBest holds what the all-knowing client rests on: whoever sends
// as soon as there is room has, after each acceptance, waited no longer than
// anybody who asks at other times, refusals and all.
func TestSoonestIsBest(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, make func() Limiter) {
		soonest, other := make(), make()
		at, best := time.Duration(0), time.Duration(0)
		pause := r.Int64N(int64(time.Second)) + 1
		for k := range 80 {
			best = first(t, soonest, best)
			for tries := 0; ; tries++ {
				if r.IntN(3) > 0 {
					at += time.Duration(r.Int64N(pause))
				}
				if _, ok := other.Take(at); ok {
					break
				}
				if tries > 50 {
					at = max(at, other.Ready(at)) // who restarts a window with each question never gets out of it
				}
			}
			if best > at+time.Microsecond { // of rounding
				t.Fatalf("acceptance %d: soonest at %v, another at %v", k, best, at)
			}
		}
	})
}

// TestStateAgreesWithReady holds that a server that tells the truth says what
// it then does.
func TestStateAgreesWithReady(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, make func() Limiter) {
		l := make()
		at := time.Duration(0)
		for range 100 {
			at += time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			st := l.State(at)
			if (st.Left > 0) != (st.Next == 0) || st.Next < 0 || st.Reset < 0 || st.Left < 0 {
				t.Fatalf("at %v: %+v", at, st)
			}
			if _, ok := l.Take(at); ok != (st.Left > 0) {
				t.Fatalf("at %v: %+v, accepted %v", at, st, ok)
			}
		}
	})
}

func TestInstancesServeInTurnAndTheBestOfThem(t *testing.T) {
	two := func() *Instances {
		return &Instances{Of: []Limiter{&Log{N: 1, Per: 10 * s}, &Log{N: 2, Per: 10 * s}}, Pick: func(n int) int { return n % 2 }}
	}
	l := two()
	var got []bool
	for range 4 {
		_, ok := l.Take(0)
		got = append(got, ok)
	}
	if want := [4]bool{true, true, false, true}; [4]bool(got) != want {
		t.Errorf("in turn: got %v, want %v", got, want)
	}
	l = two()
	for k := range 3 {
		if _, ok := l.Best(0); !ok {
			t.Errorf("best, request %d: refused", k)
		}
	}
	if got := l.Ready(0); got != 10*s {
		t.Errorf("ready at %v, want 10s", got)
	}
}

func TestBanHoldsAndIsBegunAnew(t *testing.T) {
	b := &Ban{Of: &Fixed{N: 1, Per: s}, After: 2, Within: s, For: 5 * s, Again: true}
	for _, x := range []struct {
		at time.Duration
		ok bool
	}{{0, true}, {0, false}, {s / 2, false}, {5 * s, false}, {9 * s, false}, {14 * s, true}} {
		if _, ok := b.Take(x.at); ok != x.ok {
			t.Errorf("at %v: accepted %v, want %v", x.at, ok, x.ok)
		}
	}
}
