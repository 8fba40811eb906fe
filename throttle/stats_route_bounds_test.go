package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

// TestRoutesAreBounded: beyond 64 routes the rest is counted together, and nothing
// is lost; routes in use keep their place.
func TestRoutesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, throttle.Config{DisableLearning: true})
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
		if len(h.Routes) != throttle.MostRoutes+1 || sum != 309 || h.Granted != 309 {
			t.Errorf("%d routes with %d requests, %d of the host; want 309", len(h.Routes), sum, h.Granted)
		}
		if x := routeNamed(t, h, "GET /first"); x.Granted != 3 {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, "GET /long"); x.Granted != 1 || x.InFlight != 1 {
			t.Errorf("%+v", x)
		}
		if x := routeNamed(t, h, "other requests"); x.Granted == 0 || x.Latency.Count != x.Granted {
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

// TestRoutesThatMakeRoomLoseNothing: what was counted of two routes that were quiet when
// others needed their places is counted with the rest.
func TestRoutesThatMakeRoomLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 200
		var fail error
		tr := newTransport(t, metered{testnet.Func(func(r *http.Request) (*http.Response, error) {
			if fail != nil {
				return nil, fail
			}
			time.Sleep(time.Second)
			return testnet.Answer(r, status, http.Header{"Retry-After": {"5"}}, http.NoBody), nil
		})}, throttle.Config{MaxQueue: 1, MaxWait: time.Hour, Default: throttle.MustParseBudget("1/m")})
		of := func(name string) throttle.RouteStats { return routeNamed(t, statsOf(t, tr), name) }
		again := following{tr, "throttled"}
		mustGet(t, tr, "http://h/first").Body.Close()
		var want throttle.Counts
		for _, path := range []string{"/one", "/two"} {
			time.Sleep(2 * time.Hour)
			mustGet(t, again, "http://h"+path).Body.Close()
			var one sync.WaitGroup
			gone, leave := context.WithCancel(t.Context())
			one.Go(func() { get(t, gone, tr, "http://h"+path) })
			synctest.Wait()
			if _, err := get(t, t.Context(), tr, "http://h"+path); err == nil {
				t.Error("the queue is not full")
			}
			time.Sleep(10 * time.Second)
			leave()
			one.Wait()
			mustGet(t, tr, "http://h"+path).Body.Close() // which waits
			time.Sleep(2 * time.Minute)
			fail = meterRefusal{errors.New("open")}
			get(t, t.Context(), tr, "http://h"+path)
			fail, status = nil, 429
			mustGet(t, tr, "http://h"+path).Body.Close()
			status = 200
			got := of("GET " + path).Counts
			if got.Granted == 0 || got.Waited == 0 || got.RefusedBy["queue full"] != 1 || got.Cancelled != 1 || got.Refunded != 1 ||
				got.Throttled != 1 || got.Pauses != 1 || got.Retries["throttled"] != 1 || got.Wait.Count == 0 {
				t.Fatalf("%+v", got)
			}
			if want.Granted == 0 {
				want = got
			} else if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("two routes that did the same: %+v and %+v", got, want)
			}
		}
		if err := tr.SetBudget("h", throttle.Budget{}); err != nil {
			t.Fatal(err)
		}
		others := int64(0)
		for i := range 2 * throttle.MostRoutes {
			time.Sleep(time.Hour) // those before are idle now
			mustGet(t, tr, fmt.Sprintf("http://h/p%d", i)).Body.Close()
			others++
		}
		h := statsOf(t, tr)
		for _, x := range h.Routes {
			if x.Route == "GET /one" || x.Route == "GET /two" {
				t.Fatalf("%s has kept its place", x.Route)
			}
			if strings.HasPrefix(x.Route, "GET /p") {
				others -= x.Granted
			}
		}
		got := routeNamed(t, h, "other requests").Counts
		if got.Granted != 2*want.Granted+others || got.Waited != 2*want.Waited || got.Refused != 2*want.Refused || got.RefusedBy["queue full"] != 2 ||
			got.Cancelled != 2 || got.Refunded != 2 || got.Throttled != 2 || got.Pauses != 2 || got.Retries["throttled"] != 2 || len(got.Retries) != 1 ||
			got.Wait.Count != 2*want.Wait.Count || got.Wait.Sum != 2*want.Wait.Sum || got.Latency.Count != 2*want.Latency.Count+others {
			t.Errorf("the rest: %+v\nwant twice %+v and %d requests more", got, want, others)
		}
	})
}

// following stands for retry above the throttle: its attempts follow others.
type following struct {
	t       *throttle.Transport
	outcome string
}

func (f following) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	r, tr, made := trip.Begin(r, trip.Retry, f.t.Link().Hosts)
	if made {
		defer func() { err = tr.End(err) }()
	}
	tr.At(trip.Retry)
	tr.Next()
	tr.Follow(f.outcome)
	return f.t.RoundTrip(r)
}

// TestOneRouteOfManyCredentials: whoever calls, a route is one.
func TestOneRouteOfManyCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, throttle.Config{})
		for i := range 10 {
			c.do(t.Context(), "GET", "/v1/x", "Authorization", fmt.Sprint(i))
		}
		if h := statsOf(t, c.rt); len(h.Routes) != 1 || h.Routes[0].Route != "GET /v1/x" || h.Routes[0].Granted != 10 {
			t.Errorf("%+v", h.Routes)
		}
	})
}
