package throttle_test

import (
	"testing"
	"testing/synctest"

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
