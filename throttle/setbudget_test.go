package throttle_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// A budget for another spelling of a pattern takes the place of the first one.
func TestBudgetOfAnotherSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Budgets: map[string]throttle.Budget{"H": throttle.MustParseBudget("5/s"), "i": throttle.MustParseBudget("7/s")}})
		for _, text := range []string{"6/s", "8/s"} {
			if err := tr.SetBudget("h", throttle.MustParseBudget(text)); err != nil {
				t.Fatal(err)
			}
		}
		limit := func(host string) (n int64) {
			mustGet(t, tr, "http://"+host+"/")
			for _, h := range tr.Stats().Hosts {
				for _, b := range h.Budgets {
					if h.Host == host {
						n += b.Limit
					}
				}
			}
			return n
		}
		if h, i := limit("h"), limit("i"); h != 8 || i != 7 {
			t.Errorf("%d and %d a second, want 8 and 7", h, i)
		}
		if err := tr.SetBudget("h", throttle.Budget{}); err != nil || limit("h") != 0 {
			t.Errorf("%v, %d a second without a budget", err, limit("h"))
		}
	})
}

// unspent is of how many units of each limit of a's host is left, by pattern and text.
func unspent(t *testing.T, tr *throttle.Transport) map[string]float64 {
	m := make(map[string]float64)
	for _, b := range statsOf(t, tr).Budgets {
		m[b.Pattern+": "+b.Text] = b.Unspent
	}
	return m
}

// A limit of a new budget is told what the old one counted of the same unit and the same
// requests: what the longest window remembers.
func TestANewLimitInheritsOnlyWhatCountedTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{DisableLearning: true, Budgets: budgetsOf(map[string]string{
			"a": "10/m, 10/h burst 10, 10 tokens/d burst 10, 10/s burst 10, 5 in flight", "GET a/x": "10/h burst 10",
		})})
		send := func(path string, c throttle.Cost) {
			t.Helper()
			if _, err := get(t, throttle.WithCost(t.Context(), c), tr, "http://a"+path); err != nil {
				t.Fatal(err)
			}
		}
		send("/x", throttle.Cost{requests: 3})
		time.Sleep(2 * time.Minute)
		send("/y", throttle.Cost{requests: 2, "tokens": 4})
		for pattern, text := range map[string]string{"a": "10/2h burst 10, 10 tokens/2d burst 10, 10 bytes/h burst 10, 7 in flight", "GET a/x": "10/2h burst 10, 10 tokens/h burst 10"} {
			if err := tr.SetBudget(pattern, throttle.MustParseBudget(text)); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]float64{
			"a: 10/2h burst 10": 5, "a: 10 tokens/2d burst 10": 6, "a: 10 bytes/h burst 10": 10, "a: 7 in flight": 7,
			"GET a/x: 10/2h burst 10": 7, "GET a/x: 10 tokens/h burst 10": 10,
		}
		if got := unspent(t, tr); !maps.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

// A rate does not go on as places in flight, nor these as a rate.
func TestARateIsNoPlaceInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for before, after := range map[string]string{"5/h burst 5": "5 in flight", "5 in flight": "5/h burst 5"} {
			tr := newTransport(t, newBase(slow(0)), throttle.Config{DisableLearning: true, Budgets: budgetsOf(map[string]string{"a": before})})
			resp := mustGet(t, tr, "http://a/") // whose body is open
			if err := tr.SetBudget("a", throttle.MustParseBudget(after)); err != nil {
				t.Fatal(err)
			}
			tr.Stats()
			if got := unspent(t, tr)["a: "+after]; got != 5 {
				t.Errorf("after %s %v are left of %s, want all", before, got, after)
			}
			resp.Body.Close()
		}
	})
}

// Patterns of one pool have one budget: all of it has to be the same.
func TestBudgetsOfAPoolAreEqual(t *testing.T) {
	const b = "5/s, 6 tokens/m, 3 in flight, pool x"
	for other, want := range map[string]bool{
		b: true, "5/s, 6 tokens/m, 2 in flight, pool x": false, "5/s, 3 in flight, pool x": false, "5/s, 6 bytes/m, 3 in flight, pool x": false,
		"5/s, 7 tokens/m, 3 in flight, pool x": false, "5/s, 6 tokens/m align UTC, 3 in flight, pool x": false,
		"5/s, 7 tokens/m, 3 in flight, pool y": true, "5/s, 7 tokens/m, 3 in flight": true,
	} {
		for _, by := range []map[string]string{{"a": b, "b": other}, {"a": other, "b": b}} {
			if _, err := throttle.New(nil, throttle.Config{Budgets: budgetsOf(by)}); (err == nil) != want {
				t.Errorf("%s beside %s: %v", other, b, err)
			}
		}
	}
}
