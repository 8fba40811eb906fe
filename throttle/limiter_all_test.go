package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// withAndWithoutStore runs f for a Limiter of its own and for one with a Store.
func withAndWithoutStore(t *testing.T, c throttle.LimiterConfig, f func(t *testing.T, l *throttle.Limiter)) {
	for _, name := range []string{"alone", "with a store"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := c
				if name != "alone" {
					c.Store, c.Fleet = farstore.New(time.Millisecond), throttle.FleetConfig{Members: 1}
				}
				l := limiterOf(t, c)
				defer l.Close()
				f(t, l)
				synctest.Wait()
			})
		})
	}
}

var planAndUser = throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{
	"plan:*": "3/m burst 3", "user:*": "2/m burst 2", "user:big": "9/m burst 9", "end:*": "1 in flight",
})}

// TryAll spends of every key or of none.
func TestTryAllSpendsOfAllOrNone(t *testing.T) {
	withAndWithoutStore(t, planAndUser, func(t *testing.T, l *throttle.Limiter) {
		left := func(key string) int64 { return l.Look(key, nil).Remaining }
		for i, step := range []struct {
			user    string
			allowed bool
			plan    int64
			left    int64
		}{{"ann", true, 2, 1}, {"ann", true, 1, 0}, {"ann", false, 1, 0}, {"bob", true, 0, 1}, {"bob", false, 0, 1}} {
			_, d := l.TryAll([]string{"plan:free", "user:" + step.user, "plan:free"}, nil)
			if d.Allowed != step.allowed || left("plan:free") != step.plan || left("user:"+step.user) != step.left {
				t.Errorf("step %d: %+v, %d and %d left; want %+v", i, d, left("plan:free"), left("user:"+step.user), step)
			}
			if !d.Allowed && (d.RetryAfter < 59*time.Second || d.RetryAfter > 65*time.Second) {
				t.Errorf("step %d: again after %v, want a minute", i, d.RetryAfter)
			}
		}
	})
}

// TakeAll waits until all keys have room, whichever of them is short, and its
// grant gives all of it back.
func TestTakeAllWaitsForEveryKey(t *testing.T) {
	withAndWithoutStore(t, planAndUser, func(t *testing.T, l *throttle.Limiter) {
		start := time.Now()
		for range 2 {
			l.Try("user:ann", nil)
		}
		g, err := l.TakeAll(t.Context(), []string{"plan:free", "user:ann"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < time.Minute || d > 65*time.Second {
			t.Errorf("went after %v, want a minute", d)
		}
		if n := l.Look("plan:free", nil).Remaining; n != 2 {
			t.Errorf("%d left of the plan, want 2", n)
		}
		g.Cancel()
		g.Cancel()
		time.Sleep(time.Second)
		if n, m := l.Look("plan:free", nil).Remaining, l.Look("user:ann", nil).Remaining; n != 3 || m != 2 {
			t.Errorf("%d and %d left after Cancel, want all: 3 and 2", n, m)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l.Try("plan:free", throttle.Cost{requests: 3})
		start = time.Now()
		_, err = l.TakeAll(ctx, []string{"user:big", "plan:free"}, nil)
		var refused *throttle.Error
		if !errors.As(err, &refused) || refused.Key != "plan:free" || time.Since(start) > 100*time.Millisecond {
			t.Errorf("got %v after %v, want a refusal for plan:free at once", err, time.Since(start))
		}
		if n := l.Look("user:big", nil).Remaining; n != 9 {
			t.Errorf("%d left of user:big, want all 9: nothing was spent", n)
		}
	})
}

// A place in flight of one key is held by the grant of several.
func TestTakeAllHoldsPlaces(t *testing.T) {
	withAndWithoutStore(t, planAndUser, func(t *testing.T, l *throttle.Limiter) {
		g, err := l.TakeAll(t.Context(), []string{"user:big", "end:x"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, d := l.TryAll([]string{"user:big", "end:x"}, nil); d.Allowed {
			t.Error("a second one, beside one in flight")
		}
		g.Settle(nil)
		g, d := l.TryAll([]string{"end:x", "user:big"}, nil)
		if !d.Allowed {
			t.Error("none after the first has ended")
		}
		if _, d := l.TryTake("end:x", nil); d.Allowed {
			t.Error("TryAll held no place")
		}
		g.Cancel()
	})
}

// A pause and a new budget of any of its keys hold for one that waits for several.
func TestTakeAllHearsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, planAndUser)
		l.Try("plan:free", throttle.Cost{requests: 3})
		took := make(chan time.Duration, 2)
		start := time.Now()
		for range 2 {
			go func() {
				if _, err := l.TakeAll(t.Context(), []string{"user:big", "plan:free"}, nil); err != nil {
					t.Error(err)
				}
				took <- time.Since(start)
			}()
		}
		synctest.Wait()
		l.Pause("plan:free", time.Now().Add(70*time.Second))
		time.Sleep(65 * time.Second)
		synctest.Wait()
		if len(took) != 0 {
			t.Error("went in a pause")
		}
		l.Pause("plan:free", time.Now())
		if d := <-took; d != 65*time.Second {
			t.Errorf("went after %v, want when the pause ended, 65s", d)
		}
		<-took

		l.Pause("user:x", time.Now().Add(10*time.Second))
		_, err := l.TakeAll(throttle.WithMaxWait(t.Context(), time.Second), []string{"plan:x", "user:x"}, nil)
		var refused *throttle.Error
		if !errors.As(err, &refused) || refused.Key != "user:x" || refused.Reason != throttle.Paused || refused.RetryAfter != 10*time.Second {
			t.Errorf("got %v, want a pause of user:x", err)
		}
		if n := l.Look("plan:x", nil).Remaining; n != 3 {
			t.Errorf("%d left of plan:x, want 3", n)
		}
	})
}

// However many ask for whichever keys in whatever order, with cancellations, no
// key lets more than its budget through, and nobody waits for ever.
func TestTakeAllUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("5/s burst 5"), MaxWait: time.Hour})
		var mu sync.Mutex
		went := make(map[string][]time.Time)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				dice := rand.New(rand.NewSource(int64(i)))
				for range 20 {
					var keys []string
					for range 1 + dice.Intn(4) {
						keys = append(keys, fmt.Sprint(dice.Intn(6)))
					}
					ctx, cancel := context.WithCancel(t.Context())
					if dice.Intn(4) == 0 {
						time.AfterFunc(time.Duration(1+dice.Intn(3000))*time.Millisecond, cancel)
					}
					g, err := l.TakeAll(ctx, keys, nil)
					if err == nil && dice.Intn(5) == 0 {
						g.Cancel()
					} else if err == nil {
						now := time.Now()
						mu.Lock()
						seen := make(map[string]bool)
						for _, k := range keys {
							if !seen[k] {
								went[k] = append(went[k], now)
							}
							seen[k] = true
						}
						mu.Unlock()
					}
					cancel()
				}
			}()
		}
		wg.Wait()
		for key, at := range went {
			for i := range at {
				if j := i + limit; j < len(at) && at[j].Sub(at[i]) < time.Second {
					t.Fatalf("key %s: %d within %v", key, limit+1, at[j].Sub(at[i]))
				}
			}
		}
		if err := quiet(l, 0); err != nil {
			t.Error(err)
		}
	})
}
