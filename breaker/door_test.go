package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// TestContract holds what http.RoundTripper asks for, for Door, Meter and both.
func TestContract(t *testing.T) {
	for name, wrap := range map[string]func(*breaker.Circuits, http.RoundTripper) http.RoundTripper{
		"Door":  (*breaker.Circuits).Door,
		"Meter": (*breaker.Circuits).Meter,
		"both":  func(cs *breaker.Circuits, b http.RoundTripper) http.RoundTripper { return cs.Door(cs.Meter(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			cs := circuits(t, breaker.Config{})
			var got *http.Request
			answered := testnet.Answer(httptest.NewRequest("GET", site, nil), 200, nil, testnet.NewBody("x"))
			rt := wrap(cs, testnet.Func(func(r *http.Request) (*http.Response, error) {
				got = r
				trip.CloseBody(r)
				return answered, nil
			}))
			t.Run("same response, request as it was", func(t *testing.T) {
				body := testnet.NewBody("in")
				r := httptest.NewRequest("POST", site, nil)
				r.Body, r.ContentLength = body, 2
				r.Trailer = http.Header{"X-Sum": nil}
				before, u := *r, *r.URL
				resp, err := rt.RoundTrip(r)
				if err != nil || resp != answered {
					t.Errorf("got %p, %v, want the base's %p", resp, err, answered)
				}
				if r.Body != before.Body || *r.URL != u || r.Context() != before.Context() || got == r {
					t.Error("the request was changed or handed on")
				}
				if got.ContentLength != 2 || got.Header == nil || got.Trailer == nil || body.Closes() != 1 {
					t.Errorf("handed on: length %d, trailer %v; %d closes", got.ContentLength, got.Trailer, body.Closes())
				}
				r.Trailer.Set("X-Sum", "42")
				if got.Trailer.Get("X-Sum") != "42" {
					t.Error("a trailer set late does not arrive")
				}
			})
			t.Run("NoBody stays NoBody", func(t *testing.T) {
				r := httptest.NewRequest("POST", site, nil)
				r.Body = http.NoBody
				rt.RoundTrip(r)
				if got.Body != http.NoBody {
					t.Error("wrapped")
				}
				r.Body = nil
				rt.RoundTrip(r)
				if got.Body != nil {
					t.Error("made up")
				}
			})
			t.Run("body closed when refused", func(t *testing.T) {
				cs.Force("a.example", breaker.Open)
				defer cs.Release("a.example")
				r := httptest.NewRequest("POST", site, nil)
				body := testnet.NewBody("in")
				r.Body = body
				_, err := rt.RoundTrip(r)
				if !errors.Is(err, notsent.Err) || body.Closes() != 1 || body.Reads() != 0 {
					t.Errorf("%v, %d closes, %d reads", err, body.Closes(), body.Reads())
				}
			})
			t.Run("no host", func(t *testing.T) {
				r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http"}, Header: http.Header{}}
				if _, err := rt.RoundTrip(r); err != nil {
					t.Error(err)
				}
				r.URL = nil
				if _, err := rt.RoundTrip(r); err != nil {
					t.Error(err)
				}
			})
			t.Run("records are given back", func(t *testing.T) {
				for i := range 500 {
					rt.RoundTrip(httptest.NewRequest("GET", "http://h"+strconv.Itoa(i)+".example/", nil))
				}
				table := tableOf(rt)
				table.Resize(0) // one in each part of the table
				for i := range 5000 {
					table.Acquire("i"+strconv.Itoa(i)+".example", time.Now()).Release()
				}
				if n := table.Len(); n > 16 {
					t.Errorf("%d records are held", n)
				}
			})
		})
	}
}

type closer struct {
	http.RoundTripper
	n int
}

func (c *closer) CloseIdleConnections() { c.n++ }

func TestCloseIdleConnections(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	c := &closer{}
	(&http.Client{Transport: cs.Door(cs.Meter(c))}).CloseIdleConnections()
	if c.n != 1 {
		t.Errorf("forwarded %d times", c.n)
	}
	(&http.Client{Transport: cs.Door(cs.Meter(testnet.Func(status(200))))}).CloseIdleConnections()
}

func TestANilBaseIsDefaultTransport(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	h := &host{answer: status(200)}
	defer func(was http.RoundTripper) { http.DefaultTransport = was }(http.DefaultTransport)
	http.DefaultTransport = h
	for name, rt := range map[string]http.RoundTripper{"door": cs.Door(nil), "meter": cs.Meter(nil)} {
		before := h.calls.Load()
		if _, err := get(rt, site); err != nil || h.calls.Load() != before+1 {
			t.Errorf("%s: nil is not http.DefaultTransport: %v", name, err)
		}
	}
}

// foreign is a layer that hides what is below it.
type foreign struct{ http.RoundTripper }

// TestForeignLayers: a Door and a Meter whose chains have different tables
// share circuits all the same.
func TestForeignLayers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{})
		h := &host{answer: down}
		rt := cs.Door(foreign{cs.Meter(h)})
		for range 5 {
			get(rt, site)
		}
		_, err := get(rt, site)
		if notsent.Refused(err) != notsent.Door || h.calls.Load() != 5 {
			t.Errorf("%v after %d calls", err, h.calls.Load())
		}
		other := &host{answer: status(200)}
		if _, err := get(cs.Meter(other), site); notsent.Refused(err) != notsent.Meter {
			t.Errorf("another chain of the same circuits: %v", err)
		}
		due(t, cs)
		h.set(status(200))
		for range 3 {
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "three probes through both tables")
	})
}

// TestTwoSetsKeepTheirOwnRecords: two sets of circuits in one chain do not take one another's
// records.
func TestTwoSetsKeepTheirOwnRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		strict, lax := circuits(t, breaker.Config{Consecutive: 3}), circuits(t, breaker.Config{Consecutive: 6})
		h := &host{answer: down}
		rt := lax.Door(lax.Meter(strict.Meter(h)))
		for range 3 {
			get(rt, site)
		}
		want(t, strict, breaker.Open, "three failures")
		want(t, lax, breaker.Closed, "three failures")
		for range 100 {
			get(rt, site)
		}
		want(t, lax, breaker.Closed, "refusals of the other") // not failures
		h.set(failing(errReset))
		for range 50 {
			due(t, strict)
			get(rt, site)
		}
		want(t, lax, breaker.Open, "fifty failed probes of the other")
	})
}

// TestMiddlewareWithOurContext: a request that somebody makes with our
// context is another request.
func TestMiddlewareWithOurContext(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	var rt http.RoundTripper
	var nested error
	rt = cs.Door(cs.Meter(testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "a.example" {
			_, nested = rt.RoundTrip(httptest.NewRequest("GET", "http://token.example/", nil).WithContext(r.Context()))
		}
		return status(200)(r)
	})))
	if _, err := get(rt, site); err != nil || nested != nil {
		t.Error(err, nested)
	}
}

// TestHostsWithoutRoomPass: hosts for which the table has no room pass and are not judged.
func TestHostsWithoutRoomPass(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	h := &host{answer: down}
	m := cs.Meter(h)
	tableOf(m).Resize(0)
	rt := cs.Door(m)
	stranger := "" // the first host for which there is no room
	for i := 0; stranger == ""; i++ {
		name := "h" + strconv.Itoa(i) + ".example"
		for range 5 {
			get(rt, "http://"+name+"/")
		}
		if cs.State(name) == breaker.Closed {
			stranger = name
		}
	}
	for range 100 {
		if _, err := get(rt, "http://"+stranger+"/"); !errors.Is(err, errReset) {
			t.Fatal(err)
		}
	}
	cs.Force(stranger, breaker.Open)
	_, err := get(rt, "http://"+stranger+"/")
	var e *breaker.Error
	if !errors.As(err, &e) || e.Host != stranger {
		t.Errorf("a forced host without a record: %v", err)
	}
}

func TestFallbackAnswersForRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		var err error
		answer := &http.Response{StatusCode: 203}
		fallback := func(r *http.Request, refused error) (*http.Response, error) {
			calls.Add(1)
			var e *breaker.Error
			if !errors.As(refused, &e) || !errors.Is(refused, notsent.Err) || trip.From(r.Context()) != nil {
				t.Errorf("Fallback got %v", refused)
			}
			return answer, err
		}
		cs, h, rt := rig(t, breaker.Config{Fallback: fallback})
		h.set(down)
		for range 4 {
			if _, err := get(rt, site); !errors.Is(err, errReset) {
				t.Errorf("a failure is no refusal: %v", err)
			}
		}
		cs.Force("a.example", breaker.Open)
		r := httptest.NewRequest("GET", site, nil)
		resp, got := rt.RoundTrip(r)
		if resp != answer || got != nil || resp.Body == nil || resp.Request != r || calls.Load() != 1 {
			t.Errorf("%v, %v after %d calls", resp, got, calls.Load())
		}
		answer, err = nil, errors.New("cache is empty")
		if _, got = get(rt, site); got != err {
			t.Errorf("the Fallback's own error: %v", got)
		}
		err = nil
		if _, got = get(rt, site); notsent.Refused(got) != notsent.Door {
			t.Errorf("no answer: %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls.Store(0)
		rt.RoundTrip(r.WithContext(ctx))
		old, gone := r.Clone(t.Context()), make(chan struct{})
		old.Cancel = gone //lint:ignore SA1019 what old callers do
		close(gone)
		rt.RoundTrip(old)
		if calls.Load() != 0 {
			t.Error("called for a caller that has gone")
		}
		if _, got = get(cs.Meter(h), site); notsent.Refused(got) != notsent.Meter || calls.Load() != 0 {
			t.Errorf("a Meter alone: %v", got)
		}
		// A refusal of the Meter that comes back through the Door.
		cs2 := circuits(t, breaker.Config{Fallback: fallback})
		cs2.Force("a.example", breaker.Closed)
		answer = &http.Response{StatusCode: 203, Body: testnet.NewBody("stale")}
		resp, got = cs2.Door(cs.Meter(h)).RoundTrip(r)
		if resp != answer || got != nil {
			t.Errorf("a Meter's refusal: %v, %v", resp, got)
		}
	})
}

func TestErrorNamesHostAndState(t *testing.T) {
	for _, test := range []struct {
		err  *breaker.Error
		want string
	}{
		{&breaker.Error{Host: "a.example", State: breaker.Open}, "breaker: a.example: circuit is open"},
		{&breaker.Error{Host: "a.example", State: breaker.Open, RetryAfter: 1234567 * time.Microsecond}, "breaker: a.example: circuit is open, for another 1.235s"},
		{&breaker.Error{Host: "a.example:81", Shard: "00c0ffee", State: breaker.HalfOpen}, "breaker: a.example:81 shard 00c0ffee: circuit is half-open"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	bubble(t, func(t *testing.T) { // one who waited says why no longer
		cs, h, rt := rig(t, breaker.Config{Patience: time.Hour})
		open(t, cs, h, rt)
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		go get(rt, site) // the probe
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err := send(ctx, rt)
		var e *breaker.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		e.RetryAfter = 0
		if got, want := e.Error(), "breaker: a.example: circuit is half-open: context canceled"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		gate <- status(200)
	})
}

// TestErrorThroughClient: found through url.Error, without secrets.
func TestErrorThroughClient(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	cs.Force("a.example", breaker.Open)
	client := &http.Client{Transport: cs.Door(cs.Meter(testnet.Func(status(200))))}
	_, err := client.Get("http://user:secret@a.example/?token=secret")
	var e *breaker.Error
	if !errors.As(err, &e) || !errors.Is(err, notsent.Err) {
		t.Fatalf("%v", err)
	}
	if strings.Contains(e.Error(), "secret") {
		t.Errorf("%v", e)
	}
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || timeout.Timeout() {
		t.Error("a refusal is not a timeout")
	}
}

// Answers of the Fallback are counted, for a circuit and for one held open by
// hand; what it declines is not.
func TestFallbacksAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Consecutive: 1, OpenFor: time.Hour, MaxOpenFor: time.Hour, Fallback: func(r *http.Request, refused error) (*http.Response, error) {
			if r.URL.Path == "/none" {
				return nil, nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}})
		h.set(status(500))
		call := func(path string) {
			if resp, err := rt.RoundTrip(httptest.NewRequest("GET", site+path, nil)); err == nil {
				resp.Body.Close()
			}
		}
		count := func(forced bool, refused, fallbacks uint64) {
			t.Helper()
			all := cs.Stats().Circuits
			if len(all) != 1 || all[0].Forced != forced || all[0].Refused != refused || all[0].Fallbacks != fallbacks {
				t.Errorf("%+v, want %d refused, %d answered", all, refused, fallbacks)
			}
		}
		for range 25 {
			call("a")
		}
		n := cs.Stats().Circuits[0].Refused
		if n == 0 {
			t.Fatal("nothing was refused")
		}
		count(false, n, n+1) // and the failure that opened it
		call("none")
		count(false, n+1, n+1)
		cs.Force(cs.Stats().Circuits[0].Host, breaker.Open)
		call("a")
		call("none")
		count(true, 2, 1)
	})
}
