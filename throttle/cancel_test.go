package throttle_test

import (
	"context"
	"errors"
	"github.com/weirhttp/weir/throttle"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Cancelling a waiter in the middle moves up those behind it. (x/time/rate: the
// next slot is at 300 ms instead of 200 ms.)
func TestCancelInTheMiddleMovesOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 1")
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var at [3]time.Duration
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				c := t.Context()
				if i == 1 {
					c = ctx
				}
				if _, err := l.Take(c, "k", nil); err == nil {
					at[i] = time.Since(start)
				}
			})
			synctest.Wait()
		}
		cancel()
		wg.Wait()
		if at[2] != 100*time.Millisecond {
			t.Errorf("the last one went at %v, want 100ms", at[2])
		}
	})
}

// Cancelled waiters leave no debt. (x/time/rate: after five of them the next one
// waits 4 to 5 s at 1/s although nobody is queued.)
func TestCancelledWaitersLeaveNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s burst 1")
		burst(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := l.Take(ctx, "k", nil); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		start := time.Now()
		if _, err := l.Take(t.Context(), "k", nil); err != nil || time.Since(start) != time.Second {
			t.Errorf("waited %v, %v, want 1s", time.Since(start), err)
		}
	})
}

// A grant that is cancelled later than the instant it was made comes back, as
// far as it has not flowed off. (x/time/rate: one nanosecond later nothing does.)
func TestCancelAfterANanosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "5/m burst 5")
		for range 20 {
			g, err := l.Take(police(t), "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Nanosecond)
			g.Cancel()
		}
		if n := burst(t, l, 10); n != 5 {
			t.Errorf("%d go after 20 cancelled ones, want 5", n)
		}
	})
}

// Cancel counts once. (x/time/rate: three cancels of a grant of two restore six.)
func TestCancelCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/m bucket 10")
		g, err := l.Take(police(t), "k", throttle.Cost{requests: 2})
		if err != nil {
			t.Fatal(err)
		}
		if n := burst(t, l, 10); n != 8 {
			t.Fatalf("%d go, want 8", n)
		}
		copied := g
		for range 3 {
			g.Cancel()
			copied.Cancel()
			copied.Settle(throttle.Cost{requests: 0})
		}
		if n := burst(t, l, 10); n != 2 {
			t.Errorf("%d come back, want 2", n)
		}
	})
}

// Stale grants that are cancelled return only what has not flowed off since.
// (Subtracting the cost let 40 calls through at one instant with a burst of 20.)
func TestStaleCancelsMintNothing(t *testing.T) {
	for _, budget := range []string{"20/s bucket 20", "20/s burst 20", "200/10s burst 20"} {
		t.Run(budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, budget)
				var stale []throttle.Grant
				for range 20 {
					g, err := l.Take(police(t), "k", nil)
					if err != nil {
						t.Fatal(err)
					}
					stale = append(stale, g)
				}
				time.Sleep(time.Second)
				n := burst(t, l, 100)
				for _, g := range stale {
					g.Cancel()
				}
				if n += burst(t, l, 100); n > 20 {
					t.Errorf("%d go at one instant, want at most 20", n)
				}
			})
		})
	}
}

// One who is granted and gone at the same time has spent nothing. (Of a select
// between two that are ready, either may win.)
func TestGrantedAndGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1/m bucket 1"), OnWait: func(w throttle.Wait) {
				if !w.Over {
					time.Sleep(time.Minute) // granted meanwhile
					synctest.Wait()
					cancel()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			l.Try("k", nil)
			if _, err := l.Take(ctx, "k", nil); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want context.Canceled", err)
			}
			if !l.Try("k", nil).Allowed {
				t.Fatal("the grant of one who had gone is lost")
			}
		}
	})
}
