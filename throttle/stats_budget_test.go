package throttle_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// What is left of a window is told apart from what may go at once: an idle host
// has spent nothing, though its burst is a tenth of the limit.
func TestStatsUnspent(t *testing.T) {
	for _, test := range []struct {
		budget              string
		limit               int64
		idle, left, unspent float64 // Left at first; both after three requests
	}{
		{"5000/h", 5000, 500, 497, 4997},
		{"5000/h burst 5000", 5000, 5000, 4997, 4997},
		{"10/h burst 3", 10, 3, 0, 7},
		{"5/h bucket 40", 40, 40, 37, 37},
		{"1000/d align UTC", 1000, 100, 97, 997},
		{"90 tokens/m", 90, 9, 9, 90},
		{"8 in flight", 8, 8, 8, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget(test.budget)})
			tr.Resume("h") // its record is made
			b := statsOf(t, tr).Budgets[0]
			if b.Limit != test.limit || b.Left != test.idle || b.Unspent != float64(test.limit) {
				t.Errorf("%s, idle: %+v", test.budget, b)
			}
			for range 3 {
				mustGet(t, tr, "http://h/")
			}
			b = statsOf(t, tr).Budgets[0]
			if b.Limit != test.limit || b.Left != test.left || b.Unspent != test.unspent {
				t.Errorf("%s, after three requests: %+v", test.budget, b)
			}
		})
	}
}

// A pause keeps budgets from saving up a burst meanwhile. That is not said of
// them as if they were spent: what has room when the pause ends is not told.
func TestStatsOfAPauseNameNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("5/s, 10/h burst 2, 8 in flight")})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(time.Minute))
		h := statsOf(t, tr)
		if len(h.Restrictions) != 1 || h.Restrictions[0].Why != "paused by hand" || h.Restrictions[0].For != time.Minute {
			t.Errorf("while nothing else holds: %+v", h.Restrictions)
		}
		tr.Resume("h")
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(time.Minute))
		h = statsOf(t, tr)
		if len(h.Restrictions) != 2 || h.Restrictions[1].Why != "10/h burst 2 is spent" || h.Restrictions[1].For <= time.Minute {
			t.Errorf("a budget that holds for longer: %+v", h.Restrictions)
		}
	})
}

// The same of a pause that the server asked for: it is what a request waits for
// and what its route shows.
func TestStatsOfAServersPauseNameNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"60"}}, nil), nil
		}
		var waited []string
		tr := newTransport(t, newBase(refuse), throttle.Config{Default: throttle.MustParseBudget("5/s"), OnWait: func(w throttle.Wait) { waited = append(waited, w.Why) }})
		mustGet(t, tr, "http://h/a")
		h := statsOf(t, tr)
		said := func(why string) bool { // the time is jittered, and local
			return strings.HasPrefix(why, "paused until ") && strings.HasSuffix(why, ", said by Retry-After")
		}
		for _, x := range h.Restrictions {
			if !x.Learned {
				t.Errorf("told as a restriction: %+v", x)
			}
		}
		if got := h.Routes[0]; !said(got.Why) || got.State != throttle.StatePaused {
			t.Errorf("its route: %+v", got)
		}
		mustGet(t, tr, "http://h/a")
		if len(waited) != 2 || !said(waited[0]) || waited[1] != waited[0] {
			t.Errorf("waited for %q", waited)
		}
	})
}

// A budget that is spent says whose requests alone it holds up; that of a pool holds
// up those of others, too.
func TestARestrictionNamesItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{DisableLearning: true, Budgets: map[string]throttle.Budget{
			"a":         throttle.MustParseBudget("3/h burst 3"),
			"GET a/one": throttle.MustParseBudget("1/h"),
			"a/two":     throttle.MustParseBudget("1/h"),
			"a/three":   throttle.MustParseBudget("1/d, pool p"),
		}})
		for _, path := range []string{"one", "two", "three"} {
			mustGet(t, tr, "http://a/"+path).Body.Close()
		}
		got := make(map[throttle.Restriction]int)
		for _, r := range tr.Stats().Hosts[0].Restrictions {
			r.For = 0
			got[r]++
		}
		want := map[throttle.Restriction]int{
			{Unit: "requests", Why: "3/h burst 3 is spent"}:             1,
			{Unit: "requests", Why: "1/h is spent", Route: "GET a/one"}: 1,
			{Unit: "requests", Why: "1/h is spent", Route: "a/two"}:     1,
			{Unit: "requests", Why: "1/d is spent"}:                     1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("restrictions are %+v, want %+v", got, want)
		}
	})
}
