package fleet

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// One step while requests wait is no reason to go on without the store.
func TestAClockThatStepsOnceStays(t *testing.T) {
	const took = 20 * time.Second
	for _, budget := range []string{"20/s burst 20", "20/s", "20/s bucket 5", "40/2s burst 40", "60/m bucket 60", "100/5s align UTC"} {
		for _, by := range []time.Duration{-time.Hour, -30 * time.Second, -500 * time.Millisecond, 500 * time.Millisecond, 30 * time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				s := &ownClock{ledgers: make(map[string]store.Ledger), off: func() time.Duration {
					if time.Since(begin) < took/3 {
						return 0
					}
					return by
				}}
				n, changes, most := servedFor(t, s, budget, took)
				if t.Logf("%s, %v: %d served, at most %d in a second", budget, by, n, most); changes > 0 {
					t.Errorf("%s, a step of %v: %d changes of state, want none", budget, by, changes)
				}
			})
		}
	}
}

// A clock that steps again and again serves what a store that is gone does, but for what its first
// steps cost. They let a limit through once more, and each time that the store goes or comes, which
// it may do twice in a second, a burst and one request of each process.
func TestAClockThatStepsAgainAndAgainIsGone(t *testing.T) {
	const members, took = 4, time.Minute
	for _, budget := range []struct {
		text              string
		limit, burst, sum int
	}{{"20/s burst 20", 20, 20, 1200}, {"20/s", 20, 2, 1200}, {"20/s bucket 5", 25, 5, 1200}, {"40/2s burst 40", 40, 40, 1200}, {"200/s", 200, 20, 12000}} {
		dead := 0
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(time.Millisecond)
			s.Fail(errors.New("connection refused"), false)
			dead, _, _ = servedFor(t, s, budget.text, took)
		})
		for name, every := range map[string]time.Duration{"each answer": 0, "200 ms": 200 * time.Millisecond, "2 s": 2 * time.Second, "20 s": 20 * time.Second} {
			for _, by := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 1))
					var off time.Duration
					var since time.Time
					s := &ownClock{ledgers: make(map[string]store.Ledger), off: func() time.Duration {
						if time.Since(since) >= every {
							since, off = time.Now(), time.Duration(2*r.IntN(2)-1)*by
						}
						return off
					}}
					n, changes, most := servedFor(t, s, budget.text, took)
					t.Logf("%s, ±%v at %s: %.2f of what is served without a store, %d changes of state, at most %d in a second", budget.text, by, name, float64(n)/float64(dead), changes, most)
					if float64(n) < .95*float64(dead) || n > budget.sum*11/10 {
						t.Errorf("%s, ±%v at %s: %d were served, want .95 of %d, and 1.1 times %d at most", budget.text, by, name, n, dead, budget.sum)
					}
					if bound := 2 * (budget.limit + budget.burst + members); most > bound {
						t.Errorf("%s, ±%v at %s: %d in a second, want at most %d", budget.text, by, name, most, bound)
					}
				})
			}
		}
	}
}

// servedFor is how many requests four processes with 16 callers each get to send in d, how often the
// state of the store changes, and how many are sent in a second at most.
func servedFor(t *testing.T, s store.Store, budget string, d time.Duration) (n, changes, most int) {
	t.Helper()
	var count, changed atomic.Int64
	var out farstore.Sends
	var wgs []*sync.WaitGroup
	for range 4 {
		f := testFleet(t, s, Config{Members: 4, OnState: func(State, State, error) { changed.Add(1) }})
		wgs = append(wgs, load(f, on("k", rates(budget)...), 16, d, &out, &count))
	}
	for _, wg := range wgs {
		wg.Wait()
	}
	return int(count.Load()), int(changed.Load()), out.Most(time.Second)
}

// A clock that is late because the call took its time, or that drifts, has not stepped. One that steps
// once does so once, in whatever order two calls are heard that were under way then.
func TestClockSteps(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	after := func(ms int64) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	h := ticks{sent: at, heard: after(40), clock: 1_000_000_000} // it read so between 0 and 40
	for _, test := range []struct {
		sent, now, clock int64 // ms
		steps            bool
	}{
		{1000, 1040, 1000, false}, {1000, 1040, 1141, false}, {1000, 1040, 1142, true}, {1000, 1040, 860, false}, {1000, 1040, 858, true},
		{40, 3000, 0, false}, {40, 3000, 3000, false},
		{1_000_000, 1_000_040, 1_001_100, false}, {1_000_000, 1_000_040, 998_900, false}, {1_000_000, 1_000_040, 1_002_000, true},
	} {
		if got := h.steps(h.clock+1000*test.clock, after(test.sent), after(test.now)); got != test.steps {
			t.Errorf("%+v: %t", test, got)
		}
	}
	for _, test := range []struct {
		calls [][3]int64 // sent, heard, clock
		again bool
	}{
		{[][3]int64{{100, 110, 5100}, {200, 210, 5200}, {300, 310, 5300}}, false},
		{[][3]int64{{110, 130, 5110}, {100, 140, 100}, {200, 210, 5200}}, false},
		{[][3]int64{{100, 110, 5100}, {200, 210, 200}}, true},
		{[][3]int64{{100, 110, 5100}, {60_200, 60_210, 60_200}}, false},
	} {
		x, again := h, false
		for _, c := range test.calls {
			again = x.hears(h.clock+1000*c[2], after(c[0]), after(c[1])) || again
		}
		if again != test.again {
			t.Errorf("%v: again and again: %t", test.calls, again)
		}
	}
	for _, clock := range []int64{0, math.MaxInt64} {
		if x := h; x.hears(clock, after(100), after(110)) || x != h {
			t.Errorf("a clock that reads %d is believed", clock)
		}
	}
}
