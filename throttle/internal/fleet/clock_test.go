package fleet

import (
	"context"
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

// oddClock is a store whose answers tell a time that is off.
type oddClock struct {
	store.Store
	off   func() int64 // microseconds
	ready bool         // not only when a key was written
}

func (s *oddClock) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	r, err := s.Store.Book(ctx, b)
	off := s.off()
	if off == 0 {
		return r, err
	}
	add := func(t int64) int64 {
		if off == math.MaxInt64 {
			return off
		}
		return t + off
	}
	if s.ready {
		r.Ready = add(r.Ready)
	}
	for i := range r.Keys {
		r.Keys[i].At = add(r.Keys[i].At)
	}
	return r, err
}

// However impossible the time is that answers of a store tell, for a while or once, requests are sent at
// the rate meanwhile, and so they are afterwards.
func TestImpossibleTimesHoldNobodyUp(t *testing.T) {
	const rate, took = 20, 20
	for _, budget := range []string{"20/s burst 20", "20/s", "20/s bucket 5", "40/2s burst 40"} {
		for _, kind := range []struct {
			name  string
			ready bool // also of when requests may start, not only of when a key was last written
			off   func(n int64, r *rand.Rand) int64
		}{
			{"never", true, func(int64, *rand.Rand) int64 { return math.MaxInt64 }},
			{"written never", false, func(int64, *rand.Rand) int64 { return math.MaxInt64 }},
			{"never, once", true, func(n int64, _ *rand.Rand) int64 { return math.MaxInt64 * (1 - min(1, max(n-20, 20-n))) }},
			{"never, half the time", true, func(_ int64, r *rand.Rand) int64 { return r.Int64N(2) * math.MaxInt64 }},
			{"written in the future", false, func(int64, *rand.Rand) int64 { return 2_000_000 }},
			{"written in the future, half the time", false, func(_ int64, r *rand.Rand) int64 { return r.Int64N(2) * 2_000_000 }},
		} {
			for _, first := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					var n atomic.Int64
					var is atomic.Bool
					var mu sync.Mutex
					r := rand.New(rand.NewPCG(1, 1))
					s := &oddClock{Store: farstore.New(5 * time.Millisecond), ready: kind.ready, off: func() int64 {
						mu.Lock()
						defer mu.Unlock()
						if !is.Load() {
							return 0
						}
						return kind.off(n.Add(1), r)
					}}
					var fs []*Fleet
					for range 3 {
						fs = append(fs, testFleet(t, s, Config{Members: 3}))
					}
					for i := range 3 {
						odd := i == 1 || first && i == 0
						is.Store(odd)
						var out farstore.Sends
						var count atomic.Int64
						var wgs []*sync.WaitGroup
						for _, f := range fs {
							wgs = append(wgs, load(f, on("k", rates(budget)...), 8, took*time.Second, &out, &count))
						}
						for _, wg := range wgs {
							wg.Wait()
						}
						if share := float64(count.Load()) / (rate * took); share < .8 || share > 1.25 {
							t.Errorf("%s, %s (odd now: %t): %.2f of the rate were sent, want .8 to 1.25", budget, kind.name, odd, share)
						}
					}
				})
			}
		}
	}
}

// ownClock is a store in memory, a round trip away, whose clock differs from this process's.
type ownClock struct {
	mu      sync.Mutex
	off     func() time.Duration
	ledgers map[string]store.Ledger
}

// trip takes half the time of a round trip twice, and does f between them, at the time by s's clock.
func (s *ownClock) trip(f func(now time.Time)) error {
	time.Sleep(2 * time.Millisecond)
	s.mu.Lock()
	f(time.Now().Add(s.off()))
	s.mu.Unlock()
	time.Sleep(2 * time.Millisecond)
	return nil
}

func (s *ownClock) Book(_ context.Context, b store.Booking) (r store.Booked, err error) {
	return r, s.trip(func(now time.Time) {
		ls := make([]store.Ledger, len(b.Draws))
		for i, d := range b.Draws {
			ls[i] = s.ledgers[d.Key]
		}
		var next []store.Ledger
		next, r = store.Book(now, ls, b)
		for i, l := range next {
			if l.Gen != 0 {
				s.ledgers[b.Draws[i].Key] = l
			}
		}
	})
}

func (s *ownClock) Refund(_ context.Context, r store.Refund) error {
	return s.trip(func(now time.Time) {
		if l, ok := s.ledgers[r.Key]; ok {
			s.ledgers[r.Key] = l.AfterRefund(now, r)
		}
	})
}

func (s *ownClock) Tell(_ context.Context, key string, n store.News) error {
	return s.trip(func(now time.Time) { s.ledgers[key] = s.ledgers[key].AfterNews(now, n) })
}

// When the store's clock steps, requests go on at the rate.
func TestAClockThatStepsIsFollowed(t *testing.T) {
	const rate, took = 20, 10
	for _, budget := range []string{"20/s burst 20", "20/s", "20/s bucket 5", "40/2s burst 40", "100/5s align UTC"} {
		for _, by := range []time.Duration{-time.Hour, -30 * time.Second, 30 * time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				off := time.Duration(0)
				s := &ownClock{ledgers: make(map[string]store.Ledger)}
				s.off = func() time.Duration { return off }
				var n [2]atomic.Int64
				var fs []*Fleet
				var changes atomic.Int64
				for range 3 {
					fs = append(fs, testFleet(t, s, Config{Members: 3, OnState: func(State, State, error) { changes.Add(1) }}))
				}
				var out farstore.Sends
				time.Sleep(2 * time.Second) // within a window: what is left of one is waited out again after a step back
				for i := range n {
					s.mu.Lock()
					off = time.Duration(i) * by
					s.mu.Unlock()
					var wgs []*sync.WaitGroup
					for _, f := range fs {
						wgs = append(wgs, load(f, on("k", rates(budget)...), 8, took*time.Second, &out, &n[i]))
					}
					for _, wg := range wgs {
						wg.Wait()
					}
				}
				after := float64(n[1].Load()) / (rate * took)
				t.Logf("%-18s %-6v %.2f of the rate before, %.2f after, at most %d in 5 s", budget, by, float64(n[0].Load())/(rate*took), after, out.Most(5*time.Second))
				if after < .75 || after > 1.25 || changes.Load() > 0 {
					t.Errorf("%s, a step of %v: %.2f of the rate were sent with %d changes of state, want .75 to 1.25 with none", budget, by, after, changes.Load())
				}
			})
		}
	}
}
