package throttle

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
			if !slices.IsSortedFunc(h.Routes, func(a, b RouteStats) int { return strings.Compare(a.Route, b.Route) }) || len(h.Routes) < len(routes) {
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

// TestStatsOfPausedPartitions: a host that is paused by hand pauses its partitions.
func TestStatsOfPausedPartitions(t *testing.T) {
	c := calling(t, Config{Partition: func(r *http.Request) string { return r.Header.Get("Key") }})
	if err := c.do(t.Context(), "GET", "/a", "Key", "secret"); err != nil {
		t.Fatal(err)
	}
	c.rt.Pause("api.example", time.Now().Add(time.Hour))
	for _, h := range c.rt.Stats().Hosts {
		if h.State != StatePaused || len(h.Restrictions) != 1 || h.Restrictions[0].Why != "paused by hand" {
			t.Errorf("%q: %+v", h.Partition, h)
		}
		if h.Partition != "" && routeNamed(t, h, "GET /a").Why != "paused by hand" {
			t.Errorf("%+v", h.Routes)
		}
	}
}
