package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// What the tests share, who see no more of breaker than its users do.

const site = "http://a.example/"

// host is a base that answers as told.
type host struct {
	calls  atomic.Int64
	answer answer // changed by set only
	mu     sync.Mutex
}

type answer func(r *http.Request) (*http.Response, error)

func (h *host) set(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = a
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.calls.Add(1)
	h.mu.Lock()
	a := h.answer
	h.mu.Unlock()
	return a(r)
}

var errReset = errors.New("connection reset by peer")

func down(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, errReset
}

func status(code int) answer {
	return func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, code, nil, nil), nil }
}

func answerWith(code int, name, value string) answer {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		if name != "" {
			h.Set(name, value)
		}
		return testnet.Answer(r, code, h, nil), nil
	}
}

func failing(err error) answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// takes is a host whose answers take a while.
func takes(d time.Duration) answer {
	return func(r *http.Request) (*http.Response, error) {
		if err := testnet.Wait(r.Context(), d); err != nil {
			return nil, err
		}
		return status(200)(r)
	}
}

// silentOn answers at once, but not on some routes.
func silentOn(paths ...string) answer {
	return func(r *http.Request) (*http.Response, error) {
		for _, p := range paths {
			if r.URL.Path == p {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
		}
		return status(200)(r)
	}
}

// clocked is a Wire as far as a Meter knows: it says when attempts depart.
type clocked struct{ testnet.Func }

func (c *clocked) Link() trip.Link { return trip.Below(c.Func).With(trip.Wire) }

func (c *clocked) RoundTrip(r *http.Request) (*http.Response, error) {
	trip.From(r.Context()).Depart()
	return c.Func(r)
}

func circuits(t testing.TB, c breaker.Config) *breaker.Circuits {
	t.Helper()
	cs, err := breaker.NewCircuits(c)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func rig(t *testing.T, c breaker.Config) (*breaker.Circuits, *host, http.RoundTripper) {
	cs := circuits(t, c)
	h := &host{answer: status(200)}
	return cs, h, cs.Door(cs.Meter(h))
}

// tableOf returns the table of hosts in which a chain keeps its records.
func tableOf(rt http.RoundTripper) *hosts.Table { return rt.(trip.Linked).Link().Hosts }

func firstSegment(r *http.Request) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return segment
}

func get(rt http.RoundTripper, url string) (int, error) {
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", url, nil))
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func send(ctx context.Context, rt http.RoundTripper) (*http.Response, error) {
	return rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
}

// patiently sends a request that has 2 s, long enough for its end to count.
func patiently(t *testing.T, rt http.RoundTripper, path string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://a.example"+path, nil).WithContext(ctx))
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// asks is patiently for several, each letter one: of the route of that name.
func asks(t *testing.T, rt http.RoundTripper, routes string) {
	for _, r := range routes {
		patiently(t, rt, "/"+string(r))
	}
}

func refused(err error) bool { return notsent.Refused(err) != notsent.Nobody }

// load sends calls at a steady rate for a time and waits for all.
func load(t *testing.T, rt http.RoundTripper, perSecond int, lasts time.Duration, call func(i int)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range int(lasts.Seconds() * float64(perSecond)) {
		all.Go(func() { call(i) })
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	all.Wait()
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// open makes the circuit of site open, and due for a probe.
func open(t *testing.T, cs *breaker.Circuits, h *host, rt http.RoundTripper) {
	t.Helper()
	h.set(down)
	for range 100 {
		if cs.State("a.example") == breaker.Open {
			break
		}
		get(rt, site)
	}
	due(t, cs)
}

// due sleeps until the open period has ended.
func due(t *testing.T, cs *breaker.Circuits) {
	t.Helper()
	for _, c := range cs.Stats().Circuits {
		if c.Host == "a.example" && c.State != breaker.Closed {
			time.Sleep(time.Until(c.NotBefore))
			return
		}
	}
	t.Fatal("the circuit is not open")
}

// plays does what a letter of a script stands for: the host answers well (g) or
// badly (b) or slowly (s) from now on, or refuses connections (r). It reports whether a call is
// to be made then; not after a dot, for which the open period has ended.
func (h *host) plays(t *testing.T, cs *breaker.Circuits, letter rune) bool {
	t.Helper()
	switch letter {
	case 'g':
		h.set(status(200))
	case 'b':
		h.set(status(500))
	case 's':
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return status(200)(r)
		})
	case 'r':
		h.set(down)
	case '.':
		due(t, cs)
		return false
	}
	return true
}

func want(t *testing.T, cs *breaker.Circuits, s breaker.State, when string) {
	t.Helper()
	if got := cs.State("a.example"); got != s {
		t.Fatalf("%s: circuit is %v, want %v", when, got, s)
	}
}
