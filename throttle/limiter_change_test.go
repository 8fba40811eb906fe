package throttle_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// SetBudget changes what may be spent, never what has been, and those that wait
// go as soon as the new budget lets them.
func TestSetBudgetOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("5/m burst 5")})
		l.Try("k", throttle.Cost{requests: 5})
		l.Try("other", throttle.Cost{requests: 5})
		start := time.Now()
		took := make(chan time.Duration, 1)
		go func() {
			if _, err := l.Take(t.Context(), "k", nil); err != nil {
				t.Error(err)
			}
			took <- time.Since(start)
		}()
		time.Sleep(10 * time.Second)
		if err := l.SetBudget("k", throttle.MustParseBudget("8/m burst 8")); err != nil {
			t.Fatal(err)
		}
		if d := <-took; d != 10*time.Second {
			t.Errorf("one that waited went after %v, want with the new budget, 10s", d)
		}
		if got := allowed(l, "k", 20); got != 2 {
			t.Errorf("%d more, want 2: 6 of 8 are spent", got)
		}
		if l.Try("other", nil).Allowed {
			t.Error("another key has a new budget too")
		}
		if err := l.SetBudget("k", throttle.Budget{}); err != nil {
			t.Fatal(err)
		}
		if got := allowed(l, "k", 100); got != 100 {
			t.Errorf("%d of 100 without limits", got)
		}
		if err := l.SetBudget("k", throttle.MustParseBudget("1/s, pool p")); err == nil || !strings.Contains(err.Error(), `SetBudget "k".Pool`) {
			t.Errorf("a pool: %v", err)
		}
		if err := l.SetBudget("a**", throttle.Budget{}); err == nil {
			t.Error("two stars: no error")
		}
	})
}

// A pattern changes the budgets of the keys for which no other says more, also of
// those that wait, and of those that Budget said.
func TestSetBudgetOfAPattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := "1/h burst 1"
		l := limiterOf(t, throttle.LimiterConfig{
			Budgets: budgetsOf(map[string]string{"vip:*": "1/h burst 1", "vip:ann": "1/h burst 1"}),
			Budget:  func(string) throttle.Budget { return throttle.MustParseBudget(plan) },
			MaxWait: 2 * time.Hour,
		})
		var wg sync.WaitGroup
		start := time.Now()
		took := make(map[string]time.Duration)
		var mu sync.Mutex
		for _, key := range []string{"vip:ann", "vip:bob", "eve"} {
			l.Try(key, nil)
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, err := l.Take(t.Context(), key, nil); err != nil {
					t.Error(err)
				}
				mu.Lock()
				took[key] = time.Since(start)
				mu.Unlock()
			}()
		}
		synctest.Wait()
		plan = "2/h burst 2"
		if err := l.SetBudget("vip:*", throttle.MustParseBudget("2/h burst 2")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for key, want := range map[string]time.Duration{"vip:ann": time.Hour, "vip:bob": 0, "eve": 0} {
			if took[key] != want {
				t.Errorf("%s went after %v, want %v", key, took[key], want)
			}
		}
		if err := l.SetBudget("*bob", throttle.MustParseBudget("1/s")); err != nil {
			t.Error(err) // it is shorter than vip:*
		}
		if err := l.SetBudget("*:bob", throttle.MustParseBudget("9/s")); err == nil {
			t.Error("as long as vip:*, and no error")
		}
	})
}

// Budgets that change under load let no more through than the largest of them.
func TestSetBudgetUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("10/s burst 10"), MaxWait: time.Hour})
		var mu sync.Mutex
		var at []time.Time
		var wg sync.WaitGroup
		for range 64 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 10 {
					if _, err := l.Take(t.Context(), "k", nil); err != nil {
						t.Error(err)
					}
					mu.Lock()
					at = append(at, time.Now())
					mu.Unlock()
				}
			}()
		}
		for i := range 200 {
			time.Sleep(100 * time.Millisecond)
			if err := l.SetBudget([]string{"k", "*"}[i%2], throttle.MustParseBudget(fmt.Sprintf("%d/s burst %d", 5+i%6, 5+i%6))); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		for i := range at {
			if j := i + 10; j < len(at) && at[j].Sub(at[i]) < time.Second {
				t.Fatalf("11 within %v", at[j].Sub(at[i]))
			}
		}
		if err := quiet(l, 0); err != nil {
			t.Error(err)
		}
	})
}

// Refill gives units by hand to every shape of rate, Reset all of them, for
// those that wait, too, and never more than there can be.
func TestRefillAndReset(t *testing.T) {
	for _, budget := range []string{"6/h burst 6", "100/h burst 6", "2/h bucket 6", "6/d burst 6 align UTC", "6 tokens/h burst 6", "6/h burst 6, 3 in flight", "300/h burst 6"} {
		withAndWithoutStore(t, throttle.LimiterConfig{Default: throttle.MustParseBudget(budget), MaxWait: time.Minute}, func(t *testing.T, l *throttle.Limiter) {
			c := throttle.Cost{requests: 1, "tokens": 1}
			count := func() (n int) {
				for range 20 {
					if l.Try("k", c).Allowed {
						n++
					}
				}
				return n
			}
			fill := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := count(); n != 6 {
				t.Fatalf("%s: %d at once, want 6", budget, n)
			}
			fill(l.Refill("k", throttle.Cost{requests: 2, "tokens": 2}))
			if n := count(); n != 2 {
				t.Errorf("%s: %d after a refill of 2", budget, n)
			}
			start := time.Now()
			done := make(chan error, 1)
			go func() {
				_, err := l.Take(throttle.WithMaxWait(t.Context(), 30*time.Hour), "k", c)
				done <- err
			}()
			synctest.Wait()
			time.Sleep(time.Second)
			fill(l.Reset("k"))
			if err := <-done; err != nil || time.Since(start) > 3*time.Second {
				t.Errorf("%s: one that waited: %v after %v", budget, err, time.Since(start))
			}
			if n := count(); n != 5 {
				t.Errorf("%s: %d after Reset and one that waited, want 5", budget, n)
			}
			fill(l.Refill("k", throttle.Cost{requests: 1000, "tokens": 1000}))
			if n := count(); n != 6 {
				t.Errorf("%s: %d after a refill of 1000, want 6", budget, n)
			}
			if err := l.Refill("k", throttle.Cost{requests: -1}); err == nil {
				t.Errorf("%s: no error for a refill of -1", budget)
			}
		})
	}
}

// What Reset forgets does not come back from another process's memory, and a
// pause goes on.
func TestResetHoldsForTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		a, b := fleetLimiter(t, s), fleetLimiter(t, s)
		defer a.Close()
		defer b.Close()
		for range 3 {
			a.Try("k", nil)
			b.Try("k", nil)
		}
		if err := a.Reset("k"); err != nil {
			t.Fatal(err)
		}
		if d := b.Look("k", nil); d.Remaining != 3 { // its own queue still counts its three
			t.Errorf("%d left in the other process, want 3", d.Remaining)
		}
		if n := allowed(a, "k", 10) + allowed(b, "k", 10); n != 6 {
			t.Errorf("%d after Reset, want 6", n)
		}
		a.Pause("k", time.Now().Add(time.Minute))
		if err := a.Reset("k"); err != nil {
			t.Fatal(err)
		}
		if a.Try("k", nil).Allowed {
			t.Error("Reset ended a pause")
		}
		a.Close()
		if err := a.Reset("k"); err == nil {
			t.Error("no error after Close")
		}
	})
}

func fleetLimiter(t *testing.T, s throttle.Store) *throttle.Limiter {
	return limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("6/h burst 6"), Store: s, Fleet: throttle.FleetConfig{Members: 2}})
}

// Stats describe each key as a Transport's describe a host.
func TestLimiterStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{"user:*": "5/m burst 5, 3 in flight"}), MaxKeys: 2})
		for range 3 {
			l.Try("user:ann", nil)
		}
		l.Try("user:ann", throttle.Cost{requests: 9})
		l.Try("user:ann", throttle.Cost{requests: 4})
		l.Pause("user:bob", time.Now().Add(time.Minute))
		var refused *throttle.Error
		if _, err := l.Take(throttle.WithMaxWait(t.Context(), -1), "user:ann", throttle.Cost{requests: 3}); !errors.As(err, &refused) {
			t.Fatal(err)
		}
		waits := make(chan error)
		go func() {
			_, err := l.Take(t.Context(), "user:ann", throttle.Cost{requests: 4})
			waits <- err
		}()
		synctest.Wait()
		time.Sleep(5 * time.Second)
		l.Try("third", nil)
		s := l.Stats()
		of := make(map[string]throttle.HostStats)
		for _, k := range s.Keys {
			of[k.Host] = k
		}
		ann := of["user:ann"]
		if len(s.Keys) != 3 || s.Overflow != 1 || !of["others"].Overflow || of["others"].Granted != 1 {
			t.Errorf("%d keys, %d overflowed, the others: %+v", len(s.Keys), s.Overflow, of["others"])
		}
		if ann.Granted != 3 || ann.Refused != 3 || fmt.Sprint(ann.RefusedBy) != "map[never fits:1 wait too long:2]" || ann.Queue != 1 || ann.OldestWait != 5*time.Second {
			t.Errorf("ann: %+v", ann)
		}
		if len(ann.Budgets) != 2 || ann.Budgets[0].Pattern != "user:*" || ann.Budgets[0].Limit != 5 || ann.Budgets[0].Unspent != 2 || ann.Budgets[1].Unit != "" {
			t.Errorf("ann's budgets: %+v", ann.Budgets)
		}
		if bob := of["user:bob"]; bob.State != throttle.StatePaused || bob.Pauses != 1 || len(bob.Restrictions) != 1 || bob.Restrictions[0].Why != "paused by hand" {
			t.Errorf("bob: %+v", bob)
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for _, k := range l.Stats().Keys {
			if k.Host == "user:ann" && (k.Granted != 4 || k.Waited != 1 || k.Wait.Count != 1 || k.Queue != 0) {
				t.Errorf("ann, after the wait: %+v", k)
			}
		}
	})
}
