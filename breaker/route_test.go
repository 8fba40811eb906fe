package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestWhichRequestsAreOfOneRoute: requests of one line are of one route, those of different lines
// of different ones: a circuit that silence has opened binds the route that was silent.
func TestWhichRequestsAreOfOneRoute(t *testing.T) {
	lines := [][]string{
		{"GET /things", "GET /things?"},
		{"POST /things"},
		{"GET /things/1", "GET /things/2000", "GET /things/0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f", "GET /things/sk_live_0123456789abcdef"},
		{"GET /things/oauth2"},
		{"GET /things/v1beta3"},
		{"GET /things/1/parts", "GET /things/2/parts"},
		{"GET /thingsparts"},
		{"GET /bot123456:ABC-DEF1234ghIkl/getUpdates", "GET /bot654321:ABC-DEF1234ghIkl/getUpdates"},
		{"GET /bot123456:ABC-DEF1234ghIkl/sendMessage"},
		{"GET /kv?wait=5s&index=1", "GET /kv?wait=5m&index=200"},
		{"GET /kv?raw"},
		{"GET /kv"},
		{"GET /"},
	}
	request := func(s string) *http.Request {
		method, path, _ := strings.Cut(s, " ")
		return httptest.NewRequest(method, "http://a.example"+path, nil)
	}
	for i, line := range lines {
		bubble(t, func(t *testing.T) {
			rt, h := silencedOn(t, func() *http.Request { return request(line[0]) })
			for j, other := range lines {
				for _, s := range other {
					before := h.calls.Load()
					_, err := rt.RoundTrip(request(s))
					if bound := refused(err); bound != (i == j) || bound != (h.calls.Load() == before) {
						t.Errorf("%s was silent; %s is bound: %v", line[0], s, bound)
					}
				}
			}
			plain := request("GET " + line[0][strings.Index(line[0], "/"):])
			plain.Method = ""
			if _, err := rt.RoundTrip(plain); refused(err) != strings.HasPrefix(line[0], "GET ") {
				t.Errorf("%s was silent; without a method: %v", line[0], err)
			}
		})
	}
}

// silencedOn returns a chain whose circuit was opened by silence on one route, and
// its host, which says nothing for or against itself any more.
func silencedOn(t *testing.T, request func() *http.Request) (http.RoundTripper, *host) {
	t.Helper()
	cs, h, rt := rig(t, breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
	h.set(takes(time.Hour))
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		rt.RoundTrip(request().WithContext(ctx))
		cancel()
	}
	want(t, cs, breaker.Open, "five silences")
	h.set(failing(context.Canceled))
	return rt, h
}

// To find out which route a request is of costs no allocation.
func TestRoutesTakeNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rt, _ := silencedOn(t, func() *http.Request { return httptest.NewRequest("GET", site+"silent", nil) })
		r := httptest.NewRequest("GET", site+"things/1/parts?a=1&b=2", nil)
		r.Body = nil
		if n := testing.AllocsPerRun(100, func() { rt.RoundTrip(r) }); n > 2 {
			t.Errorf("%v allocations for a request that is not bound, want the trip's and that of asking the circuit", n)
		}
	})
}

// A request without a URL is of a route as any other, if its base takes it.
func TestARequestWithoutAURLIsOfARoute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := circuits(t, breaker.Config{}).Meter(&clocked{testnet.Func(status(200))})
		for range 3 {
			if _, err := m.RoundTrip(&http.Request{Header: http.Header{}}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
	})
}
