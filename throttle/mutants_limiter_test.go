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
// of none that the request does not draw on.
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
		{"10/s burst 10, 1 in flight", Cost{requests: 0}, int64(unknown), int64(unknown)},
	} {
		synctest.Test(t, func(t *testing.T) {
			if d := newLimiter(t, test.budget).Try("k", test.cost); !d.Allowed || d.Limit != test.limit || d.Remaining != test.left {
				t.Errorf("%s: %+v, want %d of %d left", test.budget, d, test.left, test.limit)
			}
		})
	}
}

// What a pause would have taken of a burst is there again if it ends at once.
func TestPauseThatEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 10")
		l.Pause("k", time.Now().Add(time.Hour))
		l.Pause("k", time.Now())
		if d := l.Try("k", Cost{requests: 10}); !d.Allowed {
			t.Errorf("%+v, want all ten", d)
		}
		b := newBase(nil)
		tr := newTransport(t, b, Config{Default: MustParseBudget("10/s burst 10"), Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }})
		urls := []string{"http://h/?who=a", "http://h/"}
		for _, url := range urls {
			mustGet(t, tr, url)
		}
		time.Sleep(time.Minute)
		tr.Pause("h", time.Now().Add(time.Hour))
		tr.Resume("h")
		for _, url := range urls {
			start := time.Now()
			for range 10 {
				mustGet(t, tr, url)
			}
			if d := time.Since(start); d > time.Millisecond {
				t.Errorf("%s: ten took %v", url, d)
			}
		}
	})
}

// Whatever an account is waited for or paused by keeps its record.
func TestIdleAccounts(t *testing.T) {
	for name, test := range map[string]struct {
		a    account
		idle bool
	}{
		"at rest":       {account{meter: open{}}, true},
		"paused":        {account{meter: open{}, paused: 11}, false},
		"paused by now": {account{meter: open{}, paused: 10}, true},
		"waited for":    {account{meter: open{}, line: &line{}}, false},
	} {
		if got := test.a.idle(10); got != test.idle {
			t.Errorf("%s: idle %t", name, got)
		}
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
		r, entry := tr.partition("h", "me")
		defer entry.Release()
		for _, m := range r.own {
			if m.a.scope != &r.scope {
				t.Error("an account of another scope than its own")
			}
		}
	})
}

// A wait is over when it is granted and when it is refused.
func TestWaitersThatAreOver(t *testing.T) {
	for _, w := range []*waiter{{granted: true}, {err: &Error{}}} {
		if !w.over() {
			t.Errorf("granted %t, %v: not over", w.granted, w.err)
		}
	}
	if (&waiter{}).over() {
		t.Error("over before it ended")
	}
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
