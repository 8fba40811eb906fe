package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// served is how many requests four processes with 16 callers each get to send
// in eight seconds.
func served(t *testing.T, s store.Store, budget string) (n, changes int) {
	t.Helper()
	var count, changed atomic.Int64
	var out farstore.Sends
	var wgs []*sync.WaitGroup
	for range 4 {
		f := testFleet(t, s, Config{Members: 4, OnState: func(State, State, error) { changed.Add(1) }})
		wgs = append(wgs, load(f, on("k", rates(budget)...), 16, 8*time.Second, &out, &count))
	}
	for _, wg := range wgs {
		wg.Wait()
	}
	return int(count.Load()), int(changed.Load())
}

// However long the store takes, a fleet is no worse off than without it.
func TestSlowStoreServesWhatADeadOneDoes(t *testing.T) {
	ms := time.Millisecond
	trips := make(map[string]func(*rand.Rand) time.Duration)
	for _, rtt := range []time.Duration{10 * ms, 25 * ms, 45 * ms, 50 * ms, 55 * ms, 100 * ms, 300 * ms, 900 * ms, 2000 * ms} {
		trips[rtt.String()] = func(*rand.Rand) time.Duration { return rtt }
	}
	for _, rtt := range []time.Duration{25 * ms, 45 * ms, 50 * ms, 55 * ms, 100 * ms} {
		trips["about "+rtt.String()] = func(r *rand.Rand) time.Duration { return rtt/2 + time.Duration(r.Int64N(int64(rtt))) }
	}
	for _, budget := range []string{"40/2s burst 40", "40/2s", "100/s", "300/s burst 300", "50/s bucket 10", "400/s burst 1", "600/m align day", "100/s, 150/2s", "100/s warmup 2s"} {
		dead := 0
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(ms)
			s.Fail(errors.New("connection refused"), false)
			dead, _ = served(t, s, budget)
		})
		for name, trip := range trips {
			t.Run(budget+" "+name, func(t *testing.T) {
				const runs = 3 // each has chances of its own: where one serves .90 to .93 of it, others serve .95
				n, changes := 0, 0
				for seed := range uint64(runs) {
					synctest.Test(t, func(t *testing.T) {
						r := rand.New(rand.NewPCG(seed, 1))
						some, changed := served(t, farstore.Vary(func() time.Duration { return trip(r) }), budget)
						n, changes = n+some, changes+changed
						if least := 0.85 * float64(dead); float64(some) < least {
							t.Errorf("%d requests served, want %.0f at least in each run", some, least)
						}
					})
				}
				t.Logf("%d of %d", n, runs*dead)
				if least := 0.9 * float64(runs*dead); float64(n) < least {
					t.Errorf("%d requests served with %d changes of state, want %.0f at least", n, changes, least)
				}
			})
		}
	}
}

// longestWaits lets callers take for eight seconds from a store with such round trips, whose answer
// or silence is all that they wait for. It returns the longest wait, and which part were longer than most.
func longestWaits(t *testing.T, callers int, trip func(*rand.Rand) time.Duration, most time.Duration) (longest time.Duration, longer float64) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, uint64(callers)))
		f := testFleet(t, farstore.Vary(func() time.Duration { return trip(r) }), Config{Members: 1})
		keys := on("k", rates("1000000/s bucket 1000000")...)
		take(f, t.Context(), keys, nil, 0, time.Minute) // before, it is not known how far the store is
		var mu sync.Mutex
		var n, over float64
		var all sync.WaitGroup
		end := time.Now().Add(8 * time.Second)
		for i := range callers {
			pause := rand.New(rand.NewPCG(2, uint64(i)))
			all.Go(func() {
				for time.Now().Before(end) {
					begin := time.Now()
					if _, err := take(f, context.Background(), keys, nil, 0, time.Minute); err != nil {
						t.Error(err)
					}
					mu.Lock()
					d := time.Since(begin)
					longest = max(longest, d)
					if n++; d > most {
						over++
					}
					mu.Unlock()
					time.Sleep(1 + time.Duration(pause.Int64N(int64(20*time.Millisecond))))
				}
			})
		}
		all.Wait()
		longer = over / n
	})
	return longest, longer
}

// However slow the store is, and however many requests come, none waits for it longer than Deadline,
// and an eighth of that for the calls of others. Where some answers come in time and some do not, a
// few wait for two calls, one after the other.
func TestRequestsWaitForASlowStoreUntilDeadline(t *testing.T) {
	const most = 50*time.Millisecond*(farGap+1)/farGap + time.Millisecond // what a share grants comes that much later
	for _, callers := range []int{1, 2, 16, 100} {
		for _, ms := range []int64{10, 15, 20, 25, 30, 45, 49, 55, 100, 300, 900, 2000} {
			rtt := time.Duration(ms) * time.Millisecond
			t.Run(fmt.Sprint(callers, " ", rtt), func(t *testing.T) {
				steady := func(*rand.Rand) time.Duration { return rtt }
				if longest, _ := longestWaits(t, callers, steady, most); longest > most {
					t.Errorf("waited %v, want at most %v", longest, most)
				}
				varies := func(r *rand.Rand) time.Duration { return rtt/2 + time.Duration(r.Int64N(int64(rtt))) }
				if longest, longer := longestWaits(t, callers, varies, most); longer > .005 {
					t.Errorf("trips of about %v: %.4f waited for longer than %v, up to %v", rtt, longer, most, longest)
				}
			})
		}
	}
}

// pooled is a store behind connections, which take long to make and are lost
// with a call that is cut off.
type pooled struct {
	store.Store
	dial time.Duration
	mu   sync.Mutex
	idle int
}

func (p *pooled) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	p.mu.Lock()
	wait := time.Millisecond
	if p.idle == 0 {
		wait += p.dial
	} else {
		p.idle--
	}
	p.mu.Unlock()
	select {
	case <-time.After(max(1, wait)):
	case <-ctx.Done():
		return store.Booked{}, ctx.Err()
	}
	p.mu.Lock()
	p.idle++
	p.mu.Unlock()
	return p.Store.Book(ctx, b)
}

// A process that starts makes connections, each of which takes longer than
// requests wait: the store is neither gone nor does it come and go.
func TestStartingProcessesDoNotFlap(t *testing.T) {
	for _, dial := range []time.Duration{60 * time.Millisecond, 300 * time.Millisecond, 800 * time.Millisecond} {
		t.Run(dial.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wgs []*sync.WaitGroup
				var out farstore.Sends
				var count, changes atomic.Int64
				shared := store.NewMemory()
				for range 16 {
					s := &pooled{Store: shared, dial: dial}
					f := testFleet(t, s, Config{Members: 16, OnState: func(State, State, error) { changes.Add(1) }})
					for k := range 3 {
						wgs = append(wgs, load(f, on(fmt.Sprint(k), meter.Spec{Limit: 500, Per: time.Second}), 8, 5*time.Second, &out, &count))
					}
				}
				for _, wg := range wgs {
					wg.Wait()
				}
				if n := changes.Load(); n > 0 {
					t.Errorf("%d changes of state, want none", n)
				}
				if n := count.Load(); n < 3*5*450*8/10 {
					t.Errorf("%d requests served, want nearly %d", n, 3*5*450)
				}
			})
		})
	}
}

// What comes too late is given back: it was not sent.
func TestLateAnswersAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rtt atomic.Int64
		rtt.Store(int64(100 * time.Millisecond))
		s := farstore.Vary(func() time.Duration { return time.Duration(rtt.Load()) })
		f := testFleet(t, s, Config{WhenDown: Pass})
		draws := on("k", rates("5/h burst 5")...)
		for range 3 {
			begin := time.Now()
			if g, err := take(f, t.Context(), draws, nil, 0, time.Minute); err != nil || g.batch != nil {
				t.Fatalf("got %+v, %v; want to go on without the store", g, err)
			}
			if d := time.Since(begin); d > 50*time.Millisecond {
				t.Errorf("waited %v for the store, want 50 ms at most", d)
			}
			time.Sleep(400 * time.Millisecond)
		}
		rtt.Store(int64(time.Millisecond))
		time.Sleep(5 * time.Second)
		for range 2 {
			take(f, t.Context(), draws, nil, 0, time.Minute) // the first brings the store back
			time.Sleep(time.Second)
		}
		other := testFleet(t, s, Config{})
		n := 0
		for range 5 {
			if _, err := take(other, t.Context(), draws, nil, 0, time.Second); err == nil {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%d of 5 were left, want 4: one was booked in time", n)
		}
	})
}
