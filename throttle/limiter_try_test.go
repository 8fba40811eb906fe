package throttle_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// Look says what Try would and leaves everything as it was, also while others
// wait.
func TestLookSaysWhatTryWould(t *testing.T) {
	for _, budget := range []string{"5/s burst 5", "10/s burst 3", "1/s bucket 4", "100/m, 3/s", "5/d burst 5 align UTC", "5/s burst 5, 2 in flight"} {
		withAndWithoutStore(t, throttle.LimiterConfig{Default: throttle.MustParseBudget(budget)}, func(t *testing.T, l *throttle.Limiter) {
			for i := range 12 {
				look := l.Look("k", nil)
				if again := l.Look("k", nil); again.Remaining != look.Remaining || again.Allowed != look.Allowed {
					t.Fatalf("%s, %d: %+v, then %+v", budget, i, look, again)
				}
				d := l.Try("k", nil)
				if d.Allowed != look.Allowed || d.Allowed && d.Remaining != look.Remaining-1 || !d.Allowed && look.RetryAfter < d.RetryAfter-time.Second {
					t.Fatalf("%s, %d: looked %+v, got %+v", budget, i, look, d)
				}
				if i > 7 {
					time.Sleep(300 * time.Millisecond)
				}
			}
			if d := l.Look("k", throttle.Cost{requests: 1000}); d.Allowed {
				t.Errorf("%s: 1000: %+v", budget, d)
			}
			if d := l.Look("k", throttle.Cost{requests: -1}); d.Allowed || d.RetryAfter != unknown {
				t.Errorf("%s: -1: %+v", budget, d)
			}
		})
	}
}

// One who looks does not pass those that wait, nor does it take their place.
func TestLookLeavesTheQueueAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 10, 10 tokens/s burst 10")
		l.Try("k", throttle.Cost{"tokens": 10})
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			if _, err := l.Take(t.Context(), "k", throttle.Cost{"tokens": 5}); err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}()
		synctest.Wait()
		for range 20 {
			if d := l.Look("k", throttle.Cost{"tokens": 1}); d.Allowed {
				t.Fatalf("passes one that waits: %+v", d)
			}
			if d := l.Look("k", nil); !d.Allowed { // it draws nothing that anybody waits for
				t.Fatalf("waits for nothing: %+v", d)
			}
		}
		if err := quiet(l, 1); err != nil {
			t.Error(err)
		}
		if d := <-done; d != time.Second {
			t.Errorf("went after %v, want 1s", d)
		}
	})
}

// A cost of nothing asks what is left of all.
func TestACostOfNothingSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "5/m burst 5")
		l.Try("k", throttle.Cost{requests: 5})
		if d := l.Try("k", throttle.Cost{requests: 0}); d.Remaining != 0 || d.Limit != 5 || !d.Allowed {
			t.Errorf("%+v, want 0 of 5 left", d)
		}
	})
}

// Places that were taken without waiting are held.
func TestTryTakeHoldsPlaces(t *testing.T) {
	withAndWithoutStore(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("2 in flight, 100/s burst 100")}, func(t *testing.T, l *throttle.Limiter) {
		var held []throttle.Grant
		for range 10 {
			if g, d := l.TryTake("k", nil); d.Allowed {
				held = append(held, g)
			}
		}
		if len(held) != 2 {
			t.Fatalf("%d of 10 at a time, want 2", len(held))
		}
		held[0].Settle(throttle.Cost{requests: 1})
		held[1].Cancel()
		time.Sleep(100 * time.Millisecond)
		if d := l.Look("k", nil); d.Remaining != 99 {
			t.Errorf("%d left, want 99: one was given back", d.Remaining)
		}
		if g, d := l.TryTake("k", throttle.Cost{requests: 1000}); d.Allowed || d.RetryAfter != unknown || !reflect.ValueOf(g).IsZero() {
			t.Errorf("more than ever fits: %+v", d)
		}
		for i := range 2 {
			if _, d := l.TryTake("k", nil); !d.Allowed {
				t.Errorf("place %d is not free", i)
			}
		}
	})
}
