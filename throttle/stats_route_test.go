package throttle

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// lasting answers after the time in the header Last, 429 where it has Refuse.
func lasting(r *http.Request) (*http.Response, error) {
	d, _ := time.ParseDuration(r.Header.Get("Last"))
	time.Sleep(d)
	if wait := r.Header.Get("Refuse"); wait != "" {
		return testnet.Answer(r, 429, http.Header{"Retry-After": {wait}}, http.NoBody), nil
	}
	return testnet.Answer(r, 200, http.Header{}, http.NoBody), nil
}

// caller makes requests of one Transport, with pairs of header fields.
type caller struct {
	t  *testing.T
	rt *Transport
}

func (c caller) do(ctx context.Context, method, path string, header ...string) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://api.example"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.rt.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func calling(t *testing.T, c Config) caller {
	t.Helper()
	rt, err := New(testnet.Func(lasting), c)
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, rt}
}

func routeNamed(t *testing.T, h HostStats, name string) RouteStats {
	t.Helper()
	for _, x := range h.Routes {
		if x.Route == name {
			return x
		}
	}
	t.Fatalf("no route %q in %+v", name, h.Routes)
	return RouteStats{}
}

// TestStatsByRoute: every number of every route follows from the script, and a
// host's are their sums.
func TestStatsByRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const search, items, orders = "GET api.example/search", "GET /items", "POST /orders"
		c := calling(t, Config{Budgets: map[string]Budget{search: MustParseBudget("2/m burst 2")}, MaxQueue: 2, MaxWait: 5 * time.Minute})
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(c.do(ctx, "GET", "/items/1", "Last", "20ms"))
		must(c.do(ctx, "GET", "/items/2", "Last", "20ms", "Authorization", "another"))
		for range 2 {
			must(c.do(ctx, "GET", "/search?q=x", "Last", "200ms"))
		}
		if err := c.do(WithMaxWait(ctx, -1), "GET", "/search"); err == nil {
			t.Error("a third search within a minute")
		}
		gone, leave := context.WithCancel(ctx)
		var done sync.WaitGroup
		for _, ctx := range []context.Context{ctx, gone} {
			done.Go(func() { c.do(ctx, "GET", "/search") })
			synctest.Wait()
			time.Sleep(10 * time.Second)
		}
		done.Go(func() { must(c.do(ctx, "POST", "/orders", "Last", "1m")) })
		synctest.Wait()

		h := statsOf(t, c.rt)
		if len(h.Routes) != 3 || h.Routes[0].Route != items || h.Routes[1].Route != search || h.Routes[2].Route != orders {
			t.Fatalf("routes %+v", h.Routes)
		}
		got := routeNamed(t, h, search)
		if got.State != StateWaiting || got.Queue != 2 || got.OldestWait != 20*time.Second || got.InFlight != 0 ||
			got.Why != "2/m burst 2 is spent" || got.For != 99800*time.Millisecond {
			t.Errorf("while two wait: %+v", got)
		}
		if got := routeNamed(t, h, orders); got.State != StateOK || got.InFlight != 1 || got.Why != "" || got.Granted != 1 || got.Latency.Count != 0 {
			t.Errorf("under way: %+v", got)
		}
		if got := routeNamed(t, h, items); got.State != StateOK || got.InFlight != 0 || got.Why != "" {
			t.Errorf("at rest: %+v", got)
		}
		if h.State != StateWaiting || h.Queue != 2 || h.InFlight != 1 || h.OldestWait != 20*time.Second {
			t.Errorf("the host: %+v", h)
		}

		leave()
		done.Wait()
		h = statsOf(t, c.rt)
		got = routeNamed(t, h, search)
		if got.Granted != 3 || got.Waited != 2 || got.Refused != 1 || got.RefusedBy["wait too long"] != 1 || got.Cancelled != 1 || got.Queue != 0 || got.InFlight != 0 {
			t.Errorf("search: %+v", got)
		}
		if w := spread(&got.Wait); !maps.Equal(w, map[time.Duration]int64{10 * time.Second: 1, time.Minute: 1}) {
			t.Errorf("waits for search: %v", w)
		}
		if l := spread(&got.Latency); !maps.Equal(l, map[time.Duration]int64{250 * time.Millisecond: 2, time.Millisecond: 1}) {
			t.Errorf("latencies of search: %v", l)
		}
		if got := routeNamed(t, h, items); got.Granted != 2 || got.Waited != 0 || got.Wait.Count != 0 || got.Latency.Sum != 40*time.Millisecond {
			t.Errorf("items: %+v", got)
		}
		if got := routeNamed(t, h, orders); got.Granted != 1 || got.InFlight != 0 || got.Latency.Sum != time.Minute {
			t.Errorf("orders: %+v", got)
		}
		if h.State != StateOK || h.Granted != 6 || h.Waited != 2 || h.Refused != 1 || h.RefusedBy["wait too long"] != 1 || h.Cancelled != 1 || h.Latency.Count != 6 || h.Wait.Count != 2 {
			t.Errorf("the host: %+v", h)
		}
	})
}

// TestStatsOfVeryManyThatWait: those that wait are counted once each, though the lock
// is given up in between, and whatever comes and goes meanwhile.
func TestStatsOfVeryManyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2*counted + 100
		c := calling(t, Config{MaxQueue: 2 * n, MaxWait: 5 * time.Minute})
		c.rt.Pause("api.example", time.Now().Add(time.Minute))
		var done sync.WaitGroup
		for i := range n {
			path := "/items"
			if i%4 == 0 {
				path = "/orders"
			}
			done.Go(func() { c.do(t.Context(), "GET", path) })
			if i < 2 {
				synctest.Wait()
				time.Sleep(10 * time.Second)
			}
		}
		synctest.Wait()
		h := statsOf(t, c.rt)
		items, orders := routeNamed(t, h, "GET /items"), routeNamed(t, h, "GET /orders")
		if h.Queue != n || h.OldestWait != 20*time.Second || orders.Queue != n/4 || orders.OldestWait != 20*time.Second ||
			items.Queue != n-n/4 || items.OldestWait != 10*time.Second {
			t.Errorf("%d of %d wait, for %v; items: %d for %v; orders: %d for %v",
				h.Queue, n, h.OldestWait, items.Queue, items.OldestWait, orders.Queue, orders.OldestWait)
		}
		gone, leave := context.WithCancel(t.Context())
		for range 100 {
			done.Go(func() { c.do(gone, "GET", "/items") })
		}
		synctest.Wait()
		leave()
		for range 20 {
			if h = statsOf(t, c.rt); h.Queue < n || h.Queue > n+100 {
				t.Errorf("%d wait while 100 of %d leave", h.Queue, n+100)
			}
			for _, x := range h.Routes {
				if x.InFlight < 0 || x.InFlight > 100 || x.Queue > n {
					t.Errorf("while some leave: %+v", x)
				}
			}
		}
		c.rt.Resume("api.example")
		done.Wait()
	})
}

// TestStatsGivesTheLockUp: once for each so many that wait. Each time the record is
// brought up to date, so it knows of budgets that were set while the lock was held.
func TestStatsGivesTheLockUp(t *testing.T) {
	for n, want := range map[int]bool{counted - 1: false, counted + 1: true} {
		synctest.Test(t, func(t *testing.T) {
			c := calling(t, Config{MaxQueue: 2 * n, MaxWait: 5 * time.Minute})
			c.rt.Pause("api.example", time.Now().Add(time.Minute))
			var done sync.WaitGroup
			for range n {
				done.Go(func() { c.do(t.Context(), "GET", "/items") })
			}
			synctest.Wait()
			r := homeOf(c.rt, "api.example")
			e, _, _ := r.current()
			next, err := c.rt.budgets.Load().with("other.example", Budget{InFlight: 1})
			if err != nil {
				t.Fatal(err)
			}
			was := r.version
			next.version = was + 1
			c.rt.budgets.Store(next)
			_, e = r.census(e)
			if got := r.version != was; got != want {
				t.Errorf("the lock was given up while %d were counted: %t, want %t", n, got, want)
			}
			e.Unlock()
			c.rt.Resume("api.example")
			done.Wait()
		})
	}
}

// TestStatsOfPausedRoutes: a pause that the whole host asked for shows at each of
// its routes, and counts where it was begun; one by hand counts at no route.
func TestStatsOfPausedRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, Config{})
		for _, path := range []string{"/a", "/b"} {
			if err := c.do(t.Context(), "GET", path); err != nil {
				t.Fatal(err)
			}
		}
		c.do(t.Context(), "GET", "/b", "Refuse", "30")
		h := statsOf(t, c.rt)
		for _, name := range []string{"GET /a", "GET /b"} {
			if x := routeNamed(t, h, name); x.State != StatePaused || !strings.HasPrefix(x.Why, "paused until ") || x.For < 30*time.Second || x.For > 35*time.Second {
				t.Errorf("%+v", x)
			}
		}
		a, b := routeNamed(t, h, "GET /a"), routeNamed(t, h, "GET /b")
		if a.Pauses != 0 || b.Pauses != 1 || a.Throttled != 0 || b.Throttled != 1 || h.Pauses != 1 || h.Throttled != 1 || h.State != StatePaused {
			t.Errorf("a %+v\nb %+v\nhost %+v", a, b, h)
		}
		c.rt.Resume("api.example")
		c.rt.Pause("api.example", time.Now().Add(time.Hour))
		h = statsOf(t, c.rt)
		a, b = routeNamed(t, h, "GET /a"), routeNamed(t, h, "GET /b")
		if a.Pauses != 0 || b.Pauses != 1 || h.Pauses != 2 || a.Why != "paused by hand" || b.For != time.Hour || h.State != StatePaused {
			t.Errorf("by hand: a %+v\nb %+v\nhost %+v", a, b, h)
		}
	})
}

// TestStatsOfOneRoutesLimit: a limit that the server states of one route holds up
// that route alone.
func TestStatsOfOneRoutesLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			h := http.Header{}
			if r.URL.Path == "/search" {
				h.Set("RateLimit-Policy", `"search";q=30;w=60`)
				h.Set("RateLimit", `"search";r=0;t=40`)
			}
			return testnet.Answer(r, 200, h, http.NoBody), nil
		}), Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := caller{t, rt}
		for _, path := range []string{"/user", "/search"} {
			if err := c.do(t.Context(), "GET", path); err != nil {
				t.Fatal(err)
			}
		}
		h := statsOf(t, rt)
		if x := routeNamed(t, h, "GET /user"); x.State != StateOK || x.Why != "" {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, "GET /search"); x.State != StateOK || x.Why != h.Learned[0].Why || x.For < 39*time.Second {
			t.Errorf("%+v", x)
		}
		if len(h.Learned) != 1 || h.Learned[0].Route != "GET /search" {
			t.Errorf("%+v", h.Learned)
		}
	})
}

// TestRoutesAreBounded: beyond 64 routes the rest is counted together, and nothing
// is lost; routes in use keep their place.
func TestRoutesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, Config{DisableLearning: true})
		for range 3 {
			c.do(t.Context(), "GET", "/first")
		}
		var long sync.WaitGroup
		long.Go(func() { c.do(t.Context(), "GET", "/long", "Last", "3h") })
		synctest.Wait()
		for i := range 300 {
			c.do(t.Context(), "GET", fmt.Sprintf("/p%d", i))
			if i == 150 {
				time.Sleep(time.Hour) // those before are idle now
			}
		}
		for range 5 {
			c.do(t.Context(), "GET", "/often")
		}
		h := statsOf(t, c.rt)
		sum := int64(0)
		for _, x := range h.Routes {
			sum += x.Granted
		}
		if len(h.Routes) != maxRoutes+1 || sum != 309 || h.Granted != 309 {
			t.Errorf("%d routes with %d requests, %d of the host; want 309", len(h.Routes), sum, h.Granted)
		}
		if x := routeNamed(t, h, "GET /first"); x.Granted != 3 {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, "GET /long"); x.Granted != 1 || x.InFlight != 1 {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, otherRequests); x.Granted == 0 || x.Latency.Count != x.Granted {
			t.Errorf("%+v", x)
		}
		time.Sleep(time.Hour)
		c.do(t.Context(), "GET", "/late") // those before are idle now
		if x := routeNamed(t, statsOf(t, c.rt), "GET /late"); x.Granted != 1 {
			t.Errorf("%+v", x)
		}
		long.Wait()
	})
}

// TestOneRouteTakesNoMemory: a host whose requests are all alike has no book.
func TestOneRouteTakesNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, Config{})
		for i := range 10 {
			c.do(t.Context(), "GET", "/v1/x", "Authorization", fmt.Sprint(i))
		}
		c.rt.each(func(r *record) {
			if r.book != nil {
				t.Error("a book for one route")
			}
		})
		if h := statsOf(t, c.rt); len(h.Routes) != 1 || h.Routes[0].Route != "GET /v1" || h.Routes[0].Granted != 10 {
			t.Errorf("%+v", h.Routes)
		}
	})
}

// TestMergeCounters: nothing is lost when a route's counts join others.
func TestMergeCounters(t *testing.T) {
	var a, b counters
	for _, c := range []*counters{&a, &b} {
		c.granted = 3
		c.refuse(1, QueueFull)
		c.retry("throttled", 2)
		c.retry("", 9)
		c.more().waited, c.more().cancelled, c.more().refunded, c.more().throttled, c.more().paused = 4, 5, 6, 7, 8
		add(&c.latency, time.Second)
		add(&c.more().waits, time.Minute)
	}
	a.latency.counts[8], b.latency.counts[8] = 1<<32-1, 2
	a.merge(&b)
	var got Counts
	a.addTo(&got)
	if got.Granted != 6 || got.Refused != 2 || got.RefusedBy["queue full"] != 2 || got.Retries["throttled"] != 4 || len(got.Retries) != 1 ||
		got.Waited != 8 || got.Cancelled != 10 || got.Refunded != 12 || got.Throttled != 14 || got.Pauses != 16 {
		t.Errorf("%+v", got)
	}
	if got.Latency.Counts[8] != 1<<32+1 || got.Latency.Count != 1<<32+1 || got.Latency.Sum != 2*time.Second || got.Wait.Count != 2 {
		t.Errorf("latency %+v, wait %+v", got.Latency, got.Wait)
	}
	var fresh counters
	fresh.merge(&b)
	fresh.merge(&counters{granted: 1})
	if fresh.granted != 4 || fresh.rest == b.rest || fresh.latency == b.latency {
		t.Error("counters are shared")
	}
}
