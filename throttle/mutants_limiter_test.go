package throttle

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A part that had to be waited for, and a try that passes one that waits for
// more, hold no place either.
func TestLaterPartsHoldNoPlace(t *testing.T) {
	for _, most := range []int64{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, "1/s burst 1, 1 in flight")
			for i := range 3 {
				if n, err := l.TakeUpTo(t.Context(), "k", "", most); n != 1 || err != nil {
					t.Errorf("part %d of %d: %d, %v", i, most, n, err)
				}
			}
			time.Sleep(sec)
			if _, err := l.Take(police(t), "k", nil); err != nil {
				t.Errorf("after parts of %d: %v", most, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10 tokens/10s burst 10, 1 in flight")
		if d := l.Try("k", Cost{"tokens": 6}); !d.Allowed {
			t.Fatalf("%+v", d)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := l.Take(WithPriority(t.Context(), -1), "k", Cost{"tokens": 8}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if d := l.Try("k", Cost{"tokens": 1}); !d.Allowed {
			t.Errorf("%+v, want it before one of a lower priority", d)
		}
		wg.Wait()
	})
}

// A decision tells of the limit with the least left, the first of equals, and
// of none that the request does not draw on, unless it draws on none at all.
func TestDecisionsNameALimit(t *testing.T) {
	for _, test := range []struct {
		budget      string
		cost        Cost
		limit, left int64
	}{
		{"3 tokens/m burst 3, 2/s burst 2", Cost{"tokens": 2}, 3, 1},
		{"2/s burst 2, 3 tokens/m burst 3", Cost{"tokens": 2}, 2, 1},
		{"3 tokens/m burst 3, 2/s burst 2", Cost{"tokens": 3}, 3, 0},
		{"10/s burst 10, 100 tokens/m burst 100, 1 in flight", Cost{requests: 0, "tokens": 5}, 100, 95},
		{"10/s burst 10, 1 in flight", nil, 10, 9},
		{"10/s burst 10, 1 in flight", Cost{requests: 0}, 10, 10},
		{"10 tokens/s burst 10, 1 in flight", Cost{requests: 0}, 10, 10},
		{"1 in flight", nil, int64(unknown), int64(unknown)},
	} {
		synctest.Test(t, func(t *testing.T) {
			if d := newLimiter(t, test.budget).Try("k", test.cost); !d.Allowed || d.Limit != test.limit || d.Remaining != test.left {
				t.Errorf("%s: %+v, want %d of %d left", test.budget, d, test.left, test.limit)
			}
		})
	}
}

// After a pause that ends before its time, by a shorter one too, the flow
// resumes then: with one request, and the next at the rate.
func TestPauseThatEndsEarly(t *testing.T) {
	const budget = "10/s burst 5, 9 in flight"
	synctest.Test(t, func(t *testing.T) {
		for _, then := range []time.Duration{0, sec} {
			l := newLimiter(t, budget)
			l.Pause("k", time.Now().Add(time.Hour))
			l.Pause("k", time.Now().Add(then))
			time.Sleep(then)
			if d := l.Try("k", nil); !d.Allowed {
				t.Errorf("paused for %v after all: %+v, want one", then, d)
			}
			if d := l.Try("k", nil); d.Allowed || d.RetryAfter != sec/10 {
				t.Errorf("paused for %v after all: %+v, want the next in 100 ms", then, d)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget(budget), Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }})
		urls := []string{"http://h/?who=a", "http://h/"}
		for _, url := range urls {
			mustGet(t, tr, url)
		}
		time.Sleep(time.Minute)
		tr.Pause("h", time.Now().Add(time.Hour))
		tr.Resume("h")
		start := time.Now()
		for i := range 2 {
			for _, url := range urls {
				mustGet(t, tr, url)
				if got, want := time.Since(start), time.Duration(i)*sec/10; got < want || got > want+time.Microsecond {
					t.Errorf("%s: request %d went after %v, want %v", url, i, got, want)
				}
			}
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
			tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/h burst 1"), MaxWait: 24 * time.Hour})
			mustGet(t, tr, "http://h/")
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			for i, p := range test.priorities {
				wg.Go(func() {
					if _, err := get(t, WithPriority(t.Context(), p), tr, "http://h/"); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				})
				synctest.Wait()
			}
			if err := tr.SetBudget("h", MustParseBudget("2/h burst 2")); err != nil {
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

// An outlook is that of all layers, and a request without a host has none here.
func TestOutlookOfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/m burst 1"), MaxWait: -1})
		tr := newTransport(t, below, Config{Default: MustParseBudget("1/s burst 1")})
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://h/", nil)
		if d, err := tr.Outlook(r); d != 0 || err != nil {
			t.Errorf("%v, %v", d, err)
		}
		mustGet(t, tr, "http://h/")
		var e *Error
		if _, err := tr.Outlook(r); !errors.As(err, &e) || e.Reason != WaitTooLong {
			t.Errorf("%v, want the refusal below", err)
		}
		for _, r := range []*http.Request{{}, {URL: r.URL.JoinPath()}} {
			if r.URL != nil {
				r.URL.Host = ""
			}
			if d, err := newTransport(t, newBase(nil), Config{}).Outlook(r); d != 0 || err != nil {
				t.Errorf("%v: %v, %v", r.URL, d, err)
			}
		}
	})
}

// A budget for another spelling of a pattern takes the place of the first one.
func TestBudgetOfAnotherSpelling(t *testing.T) {
	b, err := newBudgets(1, Budget{}, map[string]Budget{"H": MustParseBudget("5/s"), "i": MustParseBudget("7/s")})
	if err != nil {
		t.Fatal(err)
	}
	b.by = map[string]Budget{"H": MustParseBudget("5/s"), "i": MustParseBudget("7/s")}
	next, err := b.with("h", MustParseBudget("6/s"))
	if err != nil || len(next.by) != 2 || next.by["h"].Rates[0].Limit != 6 || next.by["i"].Rates[0].Limit != 7 {
		t.Errorf("%+v, %v", next, err)
	}
}

// Stats tell of each partition, and of routes in the order of their names.
func TestStatsOfPartitionsAndRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routes := []string{"h/d", "h/b", "h/e", "h/a", "h/c"}
		budgets := make(map[string]Budget)
		for _, r := range routes {
			budgets["GET "+r] = MustParseBudget("5/s")
		}
		tr := newTransport(t, newBase(nil), Config{Budgets: budgets, Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }})
		for _, r := range routes {
			mustGet(t, tr, "http://"+r)
			mustGet(t, tr, "http://"+r+"?who=me")
		}
		s := tr.Stats()
		var parts []string
		for _, h := range s.Hosts {
			parts = append(parts, h.Host+"#"+h.Partition)
			if !slices.IsSortedFunc(h.Routes, func(a, b RouteStats) int {
				if a.Route < b.Route {
					return -1
				}
				return 1
			}) || len(h.Routes) < len(routes) {
				t.Errorf("%s %s: routes %+v", h.Host, h.Partition, h.Routes)
			}
		}
		if want := []string{"h#", "h#" + tr.shown("me")}; !slices.Equal(parts, want) {
			t.Errorf("%q, want %q", parts, want)
		}
		r, entry := tr.partition(homeOf(tr, "h"), "h", "me")
		defer entry.Release()
		for _, m := range r.own {
			if m.a.Group != &r.Group {
				t.Error("an account of another scope than its own")
			}
		}
	})
}

// At the instant a pause ends there is none.
func TestStatsAtTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("5/s")})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(time.Minute))
		for _, left := range []time.Duration{time.Minute, 1, 0} {
			h := tr.Stats().Hosts[0]
			paused := left > 0
			if (h.State == StatePaused) != paused || (h.Routes[0].State == StatePaused) != paused || (len(h.Restrictions) > 0) != paused {
				t.Errorf("%v before the end: %v, %+v, %+v", left, h.State, h.Routes, h.Restrictions)
			}
			time.Sleep(left - left/time.Minute)
		}
	})
}
