package throttle_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// most is the largest number of times within less than a window.
func most(at []time.Time, window time.Duration) (n int) {
	slices.SortFunc(at, time.Time.Compare)
	first := 0
	for i := range at {
		for at[i].Sub(at[first]) >= window {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// taken is when units were at hand that several processes took all the time, each
// late by what delay says after Take had booked them.
func taken(t *testing.T, lease time.Duration, trip, delay func() time.Duration) []time.Time {
	t.Helper()
	s := farstore.Vary(trip)
	var mu sync.Mutex
	var at []time.Time
	var wg sync.WaitGroup
	end := time.Now().Add(8 * time.Second)
	for range 4 {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("100/s"), MaxWait: time.Hour, Store: s, Fleet: throttle.FleetConfig{Members: 4, Lease: lease}})
		defer l.Close()
		for range 8 {
			wg.Go(func() {
				for time.Now().Before(end) {
					if _, err := l.Take(t.Context(), "k", nil); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(delay())
					mu.Lock()
					at = append(at, time.Now())
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return at
}

// A window of more than 64 units holds where units arrive as long as none is held
// up for more than Spread between the store's clock and its use: the reply's way,
// this process's scheduler, and what follows Take. Those held up for longer can be
// above it, and no others. A lease changes nothing of that.
func TestExactAtTheArrival(t *testing.T) {
	for _, lease := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(1, 2))
			var mu sync.Mutex
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return 1 + time.Duration(dice.Int64N(int64(d)))
			}
			trip := func() time.Duration { return upTo(20 * time.Millisecond) } // 20 ms back at most, and
			at := taken(t, lease, trip, func() time.Duration { return upTo(29 * time.Millisecond) })
			if n := most(at, time.Second); n > 100 {
				t.Errorf("lease %v: %d in a second, want 100 at most", lease, n)
			}
			rate := float64(len(at)) / 8 // 90/1.05 a second without a lease
			if want := 90 / (1.05 + lease.Seconds()); rate < 0.9*want || rate > 1.25*want {
				t.Errorf("lease %v: %.1f a second, want about %.1f", lease, rate, want)
			}
			late, stop := 0, time.Now().Add(3*time.Second)
			at = taken(t, lease, trip, func() time.Duration {
				held := time.Until(stop.Add(250 * time.Millisecond))
				if held <= 0 || held > 250*time.Millisecond {
					return 1
				}
				if mu.Lock(); held > 30*time.Millisecond { // with 20 ms of the trip more than Spread
					late++
				}
				mu.Unlock()
				return held // the processor was elsewhere for a quarter of a second
			})
			if n := most(at, time.Second); n > 100+late || lease == 0 && n <= 100 {
				t.Errorf("lease %v: %d in a second, %d were late", lease, n, late)
			}
		})
	}
}
