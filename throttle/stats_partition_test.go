package throttle_test

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// Stats tell of each partition, and of routes in the order of their names.
func TestStatsOfPartitionsAndRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routes := []string{"h/d", "h/b", "h/e", "h/a", "h/c"}
		budgets := make(map[string]throttle.Budget)
		for _, r := range routes {
			budgets["GET "+r] = throttle.MustParseBudget("5/s")
		}
		tr := newTransport(t, newBase(nil), throttle.Config{Budgets: budgets, Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }})
		for _, r := range routes {
			mustGet(t, tr, "http://"+r)
			mustGet(t, tr, "http://"+r+"?who=me")
		}
		s := tr.Stats()
		var parts []string
		for _, h := range s.Hosts {
			parts = append(parts, h.Host+"#"+h.Partition)
			if !slices.IsSortedFunc(h.Routes, func(a, b throttle.RouteStats) int { return strings.Compare(a.Route, b.Route) }) || len(h.Routes) < len(routes) {
				t.Errorf("%s %s: routes %+v", h.Host, h.Partition, h.Routes)
			}
		}
		tr.Pause("h", time.Now().Add(time.Hour))
		_, err := get(t, police(t), tr, "http://h/a?who=me")
		var refused *throttle.Error
		if !errors.As(err, &refused) || !regexp.MustCompile("^h#[0-9a-f]{8}$").MatchString(refused.Key) {
			t.Fatalf("%v of a partition", err)
		}
		if want := []string{"h#", refused.Key}; !slices.Equal(parts, want) {
			t.Errorf("%q, want %q", parts, want)
		}
	})
}

// TestStatsOfPausedPartitions: a host that is paused by hand pauses its partitions.
func TestStatsOfPausedPartitions(t *testing.T) {
	c := calling(t, throttle.Config{Partition: func(r *http.Request) string { return r.Header.Get("Key") }})
	if err := c.do(t.Context(), "GET", "/a", "Key", "secret"); err != nil {
		t.Fatal(err)
	}
	c.rt.Pause("api.example", time.Now().Add(time.Hour))
	for _, h := range c.rt.Stats().Hosts {
		if h.State != throttle.StatePaused || len(h.Restrictions) != 1 || h.Restrictions[0].Why != "paused by hand" {
			t.Errorf("%q: %+v", h.Partition, h)
		}
		if h.Partition != "" && routeNamed(t, h, "GET /a").Why != "paused by hand" {
			t.Errorf("%+v", h.Routes)
		}
	}
}
