package throttle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// With a Store no subject loses its own account to others, however few keys
// this process keeps.
func TestManySubjectsWithAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("3/h burst 3"), MaxKeys: 10,
			Store: farstore.New(time.Millisecond), Fleet: throttle.FleetConfig{Members: 1}})
		defer l.Close()
		for round, want := range []bool{true, true, true, false} {
			for i := range 300 {
				key := fmt.Sprint("user", i)
				if d := l.Try(key, nil); d.Allowed != want {
					t.Fatalf("round %d, %s: %+v, want allowed %t", round, key, d, want)
				}
			}
		}
		for i := range 300 {
			if g, d := l.TryAll([]string{fmt.Sprint("user", i), fmt.Sprint("new", i)}, nil); d.Allowed {
				t.Fatalf("%d: %+v of what is spent: %+v", i, g, d)
			}
		}
		if s := l.Stats(); s.Overflow == 0 {
			t.Error("Stats says nothing of keys without room")
		}
		if own, shared := throttle.KeysKept(l); own+shared > 11 {
			t.Errorf("%d accounts kept, want at most 11", own+shared)
		}
	})
}

// A pause of a key without room is its own where there is a Store.
func TestPauseOfOneOfManySubjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("3/h burst 3"), MaxKeys: 1,
			Store: farstore.New(time.Millisecond), Fleet: throttle.FleetConfig{Members: 1}})
		defer l.Close()
		l.Try("first", nil) // which takes the only room
		l.Pause("bad", time.Now().Add(time.Hour))
		synctest.Wait()
		time.Sleep(time.Second)
		if d := l.Try("bad", nil); d.Allowed {
			t.Error("let through in its pause")
		}
		if d := l.Try("good", nil); !d.Allowed {
			t.Errorf("held up by another's pause: %+v", d)
		}
		l.Pause("bad", time.Now())
		time.Sleep(time.Second)
		if d := l.Try("bad", nil); !d.Allowed {
			t.Errorf("held up after its pause: %+v", d)
		}
	})
}

// Without a Store keys beyond MaxKeys share one account of each budget: never
// more than that goes through for all of them, and Stats counts them.
func TestManySubjectsWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 100
		l := limiterOf(t, throttle.LimiterConfig{MaxKeys: kept, Default: throttle.MustParseBudget("5/h burst 5"),
			Budgets: budgetsOf(map[string]string{"vip:*": "7/h burst 7", "free:*": "unlimited"})})
		for i := range kept {
			l.Try(fmt.Sprint("kept", i), nil)
		}
		through := make(map[string]int)
		for i := range 50 {
			for _, kind := range []string{"", "vip:", "free:"} {
				if l.Try(fmt.Sprint(kind, i), nil).Allowed {
					through[kind]++
				}
			}
		}
		if through[""] != 5 || through["vip:"] != 7 || through["free:"] != 50 {
			t.Errorf("let through %v, want 5 of those without a name, 7 of vip, all that are unlimited", through)
		}
		if s := l.Stats(); s.Overflow != 150 {
			t.Errorf("%d calls counted of keys without room, want 150", s.Overflow)
		}
		if err := l.SetBudget("vip:*", throttle.MustParseBudget("9/h burst 9")); err != nil {
			t.Fatal(err)
		}
		if got := allowed(l, "vip:new", 20); got != 2 {
			t.Errorf("%d more of vip, want 2: what is spent is spent", got)
		}
		time.Sleep(2 * time.Hour)
		if got := allowed(l, "later", 20); got != 5 {
			t.Errorf("%d of 20, want a full account when there is room again", got)
		}
	})
}

// What keys without room share is bounded, whatever budgets they have; beyond,
// they are refused.
func TestBudgetsOfManySubjectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := limiterOf(t, throttle.LimiterConfig{MaxKeys: 1, Budget: func(string) throttle.Budget {
			n++
			return throttle.Budget{Rates: []throttle.Rate{{Limit: n, Per: time.Hour, Burst: n}}}
		}})
		refused := 0
		for i := range 3 * throttle.MostOver {
			if !l.Try(fmt.Sprint(i), nil).Allowed {
				refused++
			}
		}
		if _, shared := throttle.KeysKept(l); shared > throttle.MostOver || throttle.BudgetsKept(l) > throttle.MostSaid || refused != 2*throttle.MostOver-1 {
			t.Errorf("%d shared, %d budgets, %d refused", shared, throttle.BudgetsKept(l), refused)
		}
		time.Sleep(time.Hour)
		allowed := l.Try("x", nil).Allowed
		if _, shared := throttle.KeysKept(l); !allowed || shared > throttle.MostOver {
			t.Errorf("when there is room again: let through %t, %d shared", allowed, shared)
		}
	})
}
