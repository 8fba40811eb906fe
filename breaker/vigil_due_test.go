package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// hush is a host that answers each route after a time of its own, until it falls
// silent.
type hush struct {
	t     *testing.T
	cs    *breaker.Circuits
	meter http.RoundTripper
	takes map[string]time.Duration
	code  int
	still bool
}

func newHush(t *testing.T) *hush {
	h := &hush{t: t, cs: circuits(t, breaker.Config{}), takes: make(map[string]time.Duration), code: 200}
	h.meter = h.cs.Meter(&clocked{func(r *http.Request) (*http.Response, error) {
		if h.still {
			return takes(forever)(r)
		}
		if err := testnet.Wait(r.Context(), h.takes[r.URL.Path]); err != nil {
			return nil, err
		}
		return status(h.code)(r)
	}})
	h.answers("/", 0)
	h.answers("/", 0) // from the second answer on times are known
	return h
}

// answers has the host answer a request after took, and a second go by.
func (h *hush) answers(path string, took time.Duration) {
	h.t.Helper()
	h.takes[path], h.still = took, false
	if err := send1(h.t, h.meter, path, 0); err != nil {
		h.t.Fatal(err)
	}
	h.still = true
	time.Sleep(time.Second)
}

// ask sends n requests, which are not answered, and returns what ends the last.
func (h *hush) ask(path string, n int) (leave func()) {
	for range n {
		var ctx context.Context
		ctx, leave = context.WithCancel(h.t.Context())
		r := httptest.NewRequest("GET", site[:len(site)-1]+path, nil).WithContext(ctx)
		r.Body = nil
		go h.meter.RoundTrip(r)
		synctest.Wait()
	}
	return leave
}

// suspected reports whether one who comes now finds the host suspected.
func (h *hush) suspected() bool {
	h.ask("/asking", 1)
	return h.cs.State("a.example") != breaker.Closed
}

// due checks that a crowd on a route is due after d and not before.
func (h *hush) due(path string, d time.Duration) {
	h.t.Helper()
	h.ask(path, 5)
	if time.Sleep(d - 1); h.suspected() {
		h.t.Errorf("%.8s: due before %v", path, d)
	}
	if time.Sleep(time.Nanosecond); !h.suspected() {
		h.t.Errorf("%.8s: not due after %v", path, d)
	}
}

// What is kept of a host's times is bounded, and routes beyond are one: it takes as
// long as the slowest of them. A slow answer counts for ten minutes.
func TestPacesAreBounded(t *testing.T) {
	name := func(i int) string { return "/" + strings.Repeat("x", i+1) }
	for i, want := range map[int]time.Duration{3: 500 * time.Millisecond, 50: 4 * 990 * time.Millisecond, 200: 4 * 990 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			for i := range 100 {
				h.answers(name(i), time.Duration(i)*10*time.Millisecond)
			}
			h.due(name(i), want)
		})
	}
	for more, want := range []time.Duration{4 * time.Second, 500 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			h.answers("/a", time.Second)
			time.Sleep(10*time.Minute - time.Second - time.Millisecond + time.Duration(more))
			h.answers("/a", time.Millisecond)
			h.due("/a", want)
		})
	}
}

// Those under way that count are those due first, each until it ends, or somebody
// is answered.
func TestThoseDueFirstCount(t *testing.T) {
	const due = 500 * time.Millisecond
	for name, x := range map[string]struct {
		ask       func(h *hush)
		after     time.Duration
		suspected bool
	}{
		"quick, not due":   {func(h *hush) { h.ask("/quick", 5) }, due - 1, false},
		"quick, due":       {func(h *hush) { h.ask("/quick", 5) }, due, true},
		"four":             {func(h *hush) { h.ask("/quick", 4) }, forever, false},
		"of unknown route": {func(h *hush) { h.ask("/unknown", 5) }, forever, false},
		"slow, not due":    {func(h *hush) { h.ask("/slow", 5) }, 4*time.Minute - 1, false},
		"slow, due":        {func(h *hush) { h.ask("/slow", 5) }, 4 * time.Minute, true},
		"slow and quick":   {func(h *hush) { h.ask("/slow", 5); h.ask("/quick", 5) }, due, true},
		"slow and quick, a slow one leaves": {func(h *hush) {
			leave := h.ask("/slow", 5)
			h.ask("/quick", 5)
			leave()
		}, due, true},
		"slow and quick, a quick one leaves": {func(h *hush) { h.ask("/slow", 5); h.ask("/quick", 5)() }, due, false},
		"all left": {func(h *hush) {
			h.ask("/quick", 1)()
			if synctest.Wait(); breaker.IsWatched(h.cs, "a.example") {
				h.t.Error("still watched")
			}
		}, forever, false},
		"one left, another came": {func(h *hush) {
			h.ask("/quick", 5)()
			synctest.Wait()
			h.ask("/quick", 1)
		}, due, true},
		"a slow one left, five quick": {func(h *hush) {
			leave := h.ask("/slow", 1)
			h.ask("/quick", 4)
			leave()
			synctest.Wait()
			h.ask("/quick", 1)
		}, due, true},
		"five more after an answer": {func(h *hush) {
			h.ask("/quick", 5)
			h.answers("/", 0)
			h.ask("/quick", 5)
		}, due, true},
		"in a second":           {func(h *hush) { h.ask("/quick", 4); time.Sleep(time.Second); h.ask("/quick", 1) }, due, true},
		"in more than a second": {func(h *hush) { h.ask("/quick", 4); time.Sleep(time.Second + 1); h.ask("/quick", 1) }, forever, false},
		"after a slow answer that was bad": {func(h *hush) {
			h.code = 500
			h.answers("/quick", time.Minute)
			h.ask("/quick", 5)
		}, due, true},
		"somebody is answered": {func(h *hush) {
			h.ask("/quick", 5)
			if h.answers("/", 0); breaker.IsWatched(h.cs, "a.example") {
				h.t.Error("still watched")
			}
		}, forever, false},
		"somebody is answered badly": {func(h *hush) {
			h.ask("/quick", 5)
			h.code = 500
			h.answers("/", 0)
		}, forever, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHush(t)
				h.answers("/quick", time.Millisecond)
				h.answers("/slow", time.Minute)
				x.ask(h)
				synctest.Wait()
				if time.Sleep(min(x.after, forever-time.Minute)); h.suspected() != x.suspected {
					t.Errorf("suspected: %v, want %v", !x.suspected, x.suspected)
				}
			})
		})
	}
}

// A hedge, and one whose body is still being sent, say nothing of the host's
// silence.
func TestWhoIsNotAwaited(t *testing.T) {
	for name, x := range map[string]struct {
		send      func(r *http.Request, t *trip.Trip) *http.Request
		suspected bool
	}{
		"a request": {func(r *http.Request, _ *trip.Trip) *http.Request { return r }, true},
		"a hedge":   {func(r *http.Request, t *trip.Trip) *http.Request { t.Hedge = true; return r }, false},
		"an upload": {func(r *http.Request, _ *trip.Trip) *http.Request { r.Body = testnet.NewBody("x"); return r }, false},
		"a body in memory": {func(r *http.Request, _ *trip.Trip) *http.Request {
			r.Body = httptest.NewRequest("POST", site, strings.NewReader("x")).Body
			return r
		}, true},
	} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil).WithContext(ctx), trip.Throttle, trip.Below(h.meter).Hosts)
					defer tr.End(nil)
					r.Body = nil
					h.meter.RoundTrip(x.send(r, tr))
				})
			}
			time.Sleep(500 * time.Millisecond)
			if got := h.suspected(); got != x.suspected {
				t.Errorf("%s: suspected: %v, want %v", name, got, x.suspected)
			}
			cancel()
			all.Wait()
		})
	}
}
