package throttle_test

import (
	"errors"
	"github.com/weirhttp/weir/throttle"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Lowered budgets refuse at once who cannot wait that long, raised ones let go
// who can go; whoever draws on what is no limit any more goes, too.
func TestBudgetsThatChangeReachEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/10s burst 1, 1 tokens/10s burst 1"), MaxWait: time.Hour, DisableLearning: true,
			Cost: func(r *http.Request) throttle.Cost { return throttle.Cost{"tokens": 1} }})
		mustGet(t, tr, "http://h/")
		var wg sync.WaitGroup
		ends := make(map[string]time.Duration)
		errs := make(map[string]error)
		var mu sync.Mutex
		start := time.Now()
		send := func(name string, most time.Duration, cost throttle.Cost) {
			ctx := throttle.WithMaxWait(throttle.WithCost(t.Context(), cost), most)
			wg.Go(func() {
				_, err := get(t, ctx, tr, "http://h/")
				mu.Lock()
				defer mu.Unlock()
				ends[name], errs[name] = time.Since(start), err
			})
			synctest.Wait()
		}
		send("patient", time.Hour, throttle.Cost{"tokens": 1})
		send("hasty", 25*sec, nil)
		send("dear", time.Hour, throttle.Cost{requests: 0, "tokens": 1})
		time.Sleep(sec)
		if err := tr.SetBudget("h", throttle.MustParseBudget("1/m burst 1, 1 tokens/m burst 1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var e *throttle.Error
		mu.Lock()
		if !errors.As(errs["hasty"], &e) || e.Reason != throttle.WaitTooLong || ends["hasty"] != sec {
			t.Errorf("hasty: %v at %v, want a refusal at once", errs["hasty"], ends["hasty"])
		}
		mu.Unlock()
		time.Sleep(sec)
		if err := tr.SetBudget("h", throttle.MustParseBudget("1/m burst 1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		if errs["dear"] != nil || ends["dear"] != 2*sec {
			t.Errorf("dear: %v at %v, want it sent when its limit was gone", errs["dear"], ends["dear"])
		}
		mu.Unlock()
		tr.SetBudget("h", throttle.Budget{})
		wg.Wait()
		if errs["patient"] != nil || ends["patient"] != 2*sec {
			t.Errorf("patient: %v at %v", errs["patient"], ends["patient"])
		}
	})
}

// When a budget changes, those that wait are looked at in their order.
func TestChangedBudgetKeepsTheOrder(t *testing.T) {
	for name, test := range map[string]struct {
		priorities []int
		first      int
	}{"by arrival": {[]int{0, 0, 0}, 0}, "by priority": {[]int{0, 2, 1}, 1}, "the last": {[]int{0, 1, 2}, 2}} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/h burst 1"), MaxWait: 24 * time.Hour})
			mustGet(t, tr, "http://h/")
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			for i, p := range test.priorities {
				wg.Go(func() {
					if _, err := get(t, throttle.WithPriority(t.Context(), p), tr, "http://h/"); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				})
				synctest.Wait()
			}
			if err := tr.SetBudget("h", throttle.MustParseBudget("2/h burst 2")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			mu.Lock()
			if len(order) != 1 || order[0] != test.first {
				t.Errorf("%s: %v went at once, want %d", name, order, test.first)
			}
			mu.Unlock()
			wg.Wait()
		})
	}
}

func TestSetBudgetReachesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("2/m burst 2")})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { get(t, throttle.WithMaxWait(t.Context(), time.Hour), tr, "http://a/") })
		}
		time.Sleep(10 * time.Second)
		if err := tr.SetBudget("a", throttle.MustParseBudget("4/m burst 4")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		sameTimes(t, b.Times(), 0, 0, 10*time.Second, 10*time.Second, time.Minute)
	})
}

// TestLoweredAndRaisedBudgetsMoveTheQueue: the next grant is at the time that the
// new budget says, earlier or later.
func TestLoweredAndRaisedBudgetsMoveTheQueue(t *testing.T) {
	for _, test := range []struct {
		from, to    string
		after, want time.Duration
	}{
		{"1/h", "1/20s", 10 * time.Second, 20 * time.Second},
		{"1/h", "1/2h", 10 * time.Second, 2 * time.Hour},
		{"1/h", "2/h burst 2", 10 * time.Second, 10 * time.Second},
		{"1/h", "unlimited", 10 * time.Second, 10 * time.Second},
		{"10/100s burst 1", "100/100s burst 1", 5 * time.Second, 5500 * time.Millisecond},
		{"100/100s burst 1", "10/100s burst 1", 500 * time.Millisecond, 5500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(nil)
			tr := newTransport(t, b, throttle.Config{Budgets: map[string]throttle.Budget{"a": throttle.MustParseBudget(test.from)}, MaxWait: 9 * time.Hour, DisableLearning: true})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { mustGet(t, tr, "http://a/") })
			}
			time.Sleep(test.after)
			if err := tr.SetBudget("a", throttle.MustParseBudget(test.to)); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			sameTimes(t, b.Times(), 0, test.want)
		})
	}
}

// A budget that is raised moves those who wait already, and one that was as
// good as zero wakes them. (x/time/rate: a waiter parked at limit 0 slept for
// ever.)
func TestRaisedBudgetWakesTheParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/3650d")})
		mustGet(t, tr, "http://a/")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := get(t, throttle.WithMaxWait(t.Context(), 1e6*time.Hour), tr, "http://a/"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Hour)
		if err := tr.SetBudget("a", throttle.MustParseBudget("1000/s")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		sameTimes(t, b.Times(), 0, time.Hour)
	})
}
