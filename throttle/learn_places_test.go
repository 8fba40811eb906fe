package throttle

import (
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/kind"
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
	p.permit.vacate(now, p.endpoint)
	if end == unsent {
		c.e.Return(now, &p.permit.Permit)
	} else {
		c.e.Answered(now, &p.permit.Permit, true)
	}
	p.permit.vacate(now, p.endpoint) // once is enough
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
			sides[i].k = newLearner(terms, s, newHostStart(terms.words)).endpointOf(kind.Key{Method: "GET", Rest: "x"}, 1)
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
		k := l.endpointOf(kind.Key{Method: "GET", Rest: "x"}, hourIn)
		if !k.open(hourIn) {
			t.Fatal("a fresh kind is open")
		}
		if upset(l, k); k.open(hourIn) {
			t.Errorf("%s: open", name)
		}
	}
}

// Whatever limits answers state, under whatever names and in whatever order, one that is found
// where it was before is the one that a look at all of them finds.
func TestLimitsAreFoundWhereTheyWereBefore(t *testing.T) {
	found, all := 0, 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			odd := func() bool { return rng.IntN(8) == 0 && seed%2 == 0 }
			limits := func() (list []headers.Limit) {
				for _, name := range []string{"", "a", "b", "c"}[:1+rng.IntN(4)] {
					if odd() {
						continue
					}
					l := headers.Limit{Remaining: known(float64(1 + rng.IntN(100))), Reset: known(time.Duration(1+rng.IntN(100)) * sec), Source: "x"}
					l.Name, l.Quota = name, known(float64(100*(1+rng.IntN(2))))
					if odd() {
						l.Name = ""
					}
					if odd() {
						l.Remaining.Known = false
					}
					list = append(list, l)
				}
				if len(list) > 1 && odd() {
					list[0], list[1] = list[1], list[0]
				}
				return list
			}
			tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
				return testnet.Answer(r, 200, nil, nil), nil
			}), Config{MaxWait: time.Hour, Classify: func(*http.Response, headers.Signal) headers.Signal {
				return headers.Signal{Limits: limits(), Throttled: rng.IntN(16) == 0}
			}})
			for range 60 {
				mustGet(t, tr, "http://h/"+[...]string{"x", "y", "z/1", "z/2"}[rng.IntN(4)])
				time.Sleep(time.Duration(rng.Int64N(int64(20 * sec))))
				for _, l := range homeOf(tr, "h").learned.by {
					for _, k := range l.endpoints {
						before := 0
						for _, x := range limits() {
							want := l.known(&x, k)
							if all++; k.again(&x, before) != nil {
								if found++; k.again(&x, before) != want {
									t.Fatalf("seed %d: %+v is %+v, want %+v", seed, x, k.again(&x, before), want)
								}
							}
							if want != nil {
								want.said = true
								before++
							}
						}
						for _, q := range l.quotas {
							q.said = false
						}
					}
				}
			}
		})
	}
	if found < all/10 {
		t.Errorf("%d of %d limits were where they had been", found, all)
	}
}

// There is room at a limit that an answer stated only if much of it is left and it is
// not paused.
func TestAStatedLimitIsRoomy(t *testing.T) {
	for name, upset := range map[string]func(q *quota){
		"nothing else":            nil,
		"a pause of the limit":    func(q *quota) { q.account.Paused = hourIn + 2 },
		"most of it is under way": func(q *quota) { q.Take(hourIn, 49, true) },
	} {
		l := learning1()
		l.terms.seed = maphash.MakeSeed()
		k := l.endpointOf(kind.Key{Method: "GET", Rest: "x"}, hourIn)
		l.hear(hourIn, &ticket{endpoint: k, sent: hourIn}, &headers.Signal{Limits: []headers.Limit{stating(50, 100, time.Minute, headers.Boundary)}}, false)
		if upset != nil {
			upset(k.quotas[0])
		}
		a := &ask{now: hourIn + 1}
		if k.stated(nil, a); a.roomy != (upset == nil) {
			t.Errorf("%s: got %t", name, a.roomy)
		}
	}
}
