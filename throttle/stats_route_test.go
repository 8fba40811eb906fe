package throttle_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
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
	rt *throttle.Transport
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

func calling(t *testing.T, c throttle.Config) caller {
	t.Helper()
	rt, err := throttle.New(testnet.Func(lasting), c)
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, rt}
}

func routeNamed(t *testing.T, h throttle.HostStats, name string) throttle.RouteStats {
	t.Helper()
	for _, x := range h.Routes {
		if x.Route == name {
			return x
		}
	}
	t.Fatalf("no route %q in %+v", name, h.Routes)
	return throttle.RouteStats{}
}

// TestStatsByRoute: every number of every route follows from the script, and a
// host's are their sums.
func TestStatsByRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const search, items, orders = "GET api.example/search", "GET /items", "POST /orders"
		c := calling(t, throttle.Config{Budgets: map[string]throttle.Budget{search: throttle.MustParseBudget("2/m burst 2")}, MaxQueue: 2, MaxWait: 5 * time.Minute})
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
		if err := c.do(throttle.WithMaxWait(ctx, -1), "GET", "/search"); err == nil {
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
		if got.State != throttle.StateWaiting || got.Queue != 2 || got.OldestWait != 20*time.Second || got.InFlight != 0 ||
			got.Why != "2/m burst 2 is spent" || got.For != 99800*time.Millisecond {
			t.Errorf("while two wait: %+v", got)
		}
		if got := routeNamed(t, h, orders); got.State != throttle.StateOK || got.InFlight != 1 || got.Why != "" || got.Granted != 1 || got.Latency.Count != 0 {
			t.Errorf("under way: %+v", got)
		}
		if got := routeNamed(t, h, items); got.State != throttle.StateOK || got.InFlight != 0 || got.Why != "" {
			t.Errorf("at rest: %+v", got)
		}
		if h.State != throttle.StateWaiting || h.Queue != 2 || h.InFlight != 1 || h.OldestWait != 20*time.Second {
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
		if h.State != throttle.StateOK || h.Granted != 6 || h.Waited != 2 || h.Refused != 1 || h.RefusedBy["wait too long"] != 1 || h.Cancelled != 1 || h.Latency.Count != 6 || h.Wait.Count != 2 {
			t.Errorf("the host: %+v", h)
		}
	})
}

// TestStatsOfVeryManyThatWait: those that wait are counted once each, though the lock
// is given up in between, and whatever comes and goes meanwhile.
func TestStatsOfVeryManyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2*throttle.Counted + 100
		c := calling(t, throttle.Config{MaxQueue: 2 * n, MaxWait: 5 * time.Minute})
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

// TestStatsOfPausedRoutes: a pause that the whole host asked for shows at each of
// its routes, and counts where it was begun; one by hand counts at no route.
func TestStatsOfPausedRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, throttle.Config{})
		for _, path := range []string{"/a", "/b"} {
			if err := c.do(t.Context(), "GET", path); err != nil {
				t.Fatal(err)
			}
		}
		c.do(t.Context(), "GET", "/b", "Refuse", "2") // which is not so long that /a would ask
		h := statsOf(t, c.rt)
		for _, name := range []string{"GET /a", "GET /b"} {
			if x := routeNamed(t, h, name); x.State != throttle.StatePaused || !strings.HasPrefix(x.Why, "paused until ") || x.For < 2*time.Second || x.For > 5*time.Second {
				t.Errorf("%+v", x)
			}
		}
		a, b := routeNamed(t, h, "GET /a"), routeNamed(t, h, "GET /b")
		if a.Pauses != 0 || b.Pauses != 1 || a.Throttled != 0 || b.Throttled != 1 || h.Pauses != 1 || h.Throttled != 1 || h.State != throttle.StatePaused {
			t.Errorf("a %+v\nb %+v\nhost %+v", a, b, h)
		}
		c.rt.Resume("api.example")
		c.rt.Pause("api.example", time.Now().Add(time.Hour))
		h = statsOf(t, c.rt)
		a, b = routeNamed(t, h, "GET /a"), routeNamed(t, h, "GET /b")
		if a.Pauses != 0 || b.Pauses != 1 || h.Pauses != 2 || a.Why != "paused by hand" || b.For != time.Hour || h.State != throttle.StatePaused {
			t.Errorf("by hand: a %+v\nb %+v\nhost %+v", a, b, h)
		}
	})
}

// TestStatsOfOneRoutesLimit: a limit that the server states of one route holds up
// that route alone.
func TestStatsOfOneRoutesLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := throttle.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			h := http.Header{}
			if r.URL.Path == "/search" {
				h.Set("RateLimit-Policy", `"search";q=30;w=60`)
				h.Set("RateLimit", `"search";r=0;t=40`)
			}
			return testnet.Answer(r, 200, h, http.NoBody), nil
		}), throttle.Config{})
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
		if x := routeNamed(t, h, "GET /user"); x.State != throttle.StateOK || x.Why != "" {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, "GET /search"); x.State != throttle.StateOK || x.Why != h.Learned[0].Why || x.For < 39*time.Second {
			t.Errorf("%+v", x)
		}
		if len(h.Learned) != 1 || h.Learned[0].Route != "GET /search" {
			t.Errorf("%+v", h.Learned)
		}
	})
}

// Versions of an API tell no request from another; what follows them does, unless it is
// the name of an object.
func TestRoutesOfVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for path, want := range map[string]string{
			"/v1": "/v1", "/v1/": "/v1", "/api": "/api", "/api/": "/api", "/v1/orders": "/v1/orders", "/v1/orders/17": "/v1/orders",
			"/api/v2/orders/17/lines": "/api/v2/orders", "/api/chat.postMessage": "/api/chat.postMessage", "/v1.0/me": "/v1.0/me", "/v2beta1/a": "/v2beta1/a",
			"/v18.0/1234567890": "/v18.0", "/v1/sk-abcdefghijklmnopqrstuvwxyz": "/v1", "/v1/a1": "/v1", "/v1//x": "/v1", "/v1/%7Bx%7D": "/v1",
			"/videos/all": "/videos", "/apis/apps/v1": "/apis", "/orders/v1": "/orders", "/v": "/v", "/": "/",
		} {
			c := calling(t, throttle.Config{})
			c.do(t.Context(), "GET", path)
			if h := statsOf(t, c.rt); len(h.Routes) != 1 || h.Routes[0].Route != "GET "+want {
				t.Errorf("%s is counted at %+v, want %s", path, h.Routes, want)
			}
		}
	})
}
