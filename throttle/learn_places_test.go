package throttle

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// These look inside: that places taken in one step and one by one come to the same
// shows only where both are held side by side, and so does it that nobody takes places in
// one step while others wait for them.

// side is one of two learners that live through the same. On the quick one
// requests take their places in one step.
type side struct {
	quick bool
	e     *queue.Domain
	k     *endpoint
	under []*attempt
}

// start reports whether a request is let in at now.
func (c *side) start(now instant) bool {
	p := &attempt{tr: new(trip.Trip), endpoint: c.k}
	needs := c.k.needs(nil, &ask{})
	if c.quick {
		needs = c.k.stated(nil, &ask{})
	}
	if c.quick && !c.k.open(now) || !queue.Room(now, needs) {
		return false
	}
	queue.Charge(now, needs, true)
	p.granted(needs, now)
	if c.quick {
		p.permit.enter(now, c.k)
	}
	c.under = append(c.under, p)
	return true
}

func (c *side) end(now instant, i int, end ending, status int, s *headers.Signal) {
	p := c.under[i]
	c.under = slices.Delete(c.under, i, i+1)
	if s == nil && (end != replied || !c.quick) {
		s = &headers.Signal{}
	}
	p.learn(now, end, status, s)
	p.permit.vacate(now)
	if end == unsent {
		c.e.Return(now, &p.permit.Permit)
	} else {
		c.e.Answered(now, &p.permit.Permit, true)
	}
	p.permit.vacate(now) // once is enough
}

// TestPlacesAreAsDraws: whether requests take their places one by one or in one
// step, the same is known afterwards, and the same are let in.
func TestPlacesAreAsDraws(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		terms := learning1().terms
		terms.pausesOnly = seed%10 == 0
		var sides [2]*side
		for i := range sides {
			s := &scope{}
			s.Gate.Meter = meter.Open{}
			sides[i] = &side{quick: i == 0, e: &queue.Domain{}}
			sides[i].k = newLearner(terms, s, newHostStart(terms.words)).endpointOf(endpointKey{"GET", "x"}, 1)
		}
		a, b := sides[0], sides[1]
		rough, busy := r.IntN(3)*4, r.IntN(3)*30 // in a hundred answers
		now := instant(1)
		for range 200 {
			now += instant(r.Int64N(int64(300 * time.Millisecond)))
			if len(a.under) == 0 || r.IntN(2) == 0 {
				got, want := a.start(now), b.start(now)
				if got != want {
					t.Fatalf("seed %d: let in %t, want %t", seed, got, want)
				}
			} else {
				i, end, status, s := r.IntN(len(a.under)), replied, 200, (*headers.Signal)(nil)
				switch n := r.IntN(100); {
				case n < rough:
					status, s = 429, &headers.Signal{Throttled: true}
					switch r.IntN(3) {
					case 0:
						s.RetryAfter = known(sec)
					case 1:
						s.Limits = []headers.Limit{stating(0, 100, sec, headers.Boundary)}
						s.Limits[0].Name = "some"
					}
				case n < rough+busy:
					status, s = 503, &headers.Signal{}
				case n < 2*rough+busy:
					s = &headers.Signal{Limits: []headers.Limit{stating(50, 100, time.Minute, headers.Boundary)}}
				case n < 3*rough+busy:
					end = []ending{unsent, cancelled, failed}[r.IntN(3)]
				}
				a.end(now, i, end, status, s)
				b.end(now, i, end, status, s)
			}
			if !reflect.DeepEqual(a.k, b.k) {
				t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, *a.k, *b.k)
			}
		}
	}
}

// Who waits goes first, whichever place he waits for, and pauses hold.
func TestPlacesAreWaitedFor(t *testing.T) {
	for name, upset := range map[string]func(l *learner, k *endpoint){
		"a line at the server's account": func(l *learner, _ *endpoint) { waitFor(&l.account) },
		"a line at the host":             func(l *learner, _ *endpoint) { waitFor(&l.host.account) },
		"a line of the kind":             func(_ *learner, k *endpoint) { waitFor(&k.account) },
		"a pause":                        func(l *learner, _ *endpoint) { l.account.Paused = hourIn + 1 },
		"a pause of the kind":            func(_ *learner, k *endpoint) { k.account.Paused = hourIn + 1 },
	} {
		l := learning1()
		k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
		if !k.open(hourIn) {
			t.Fatal("a fresh kind is open")
		}
		if upset(l, k); k.open(hourIn) {
			t.Errorf("%s: open", name)
		}
	}
}
