package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// The body made for an attempt that is not made after all is closed.
func TestUnusedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fresh *testnet.Body
		r := request(t, "PUT", "http://a.example/", "body")
		r.GetBody = func() (io.ReadCloser, error) {
			fresh = testnet.NewBody("body")
			return fresh, nil
		}
		ctx, cancel := context.WithCancel(background())
		time.AfterFunc(time.Second, cancel)
		_, err := newTransport(t, play(step{status: 503}), retry.Config{Backoff: fixed(time.Minute)}).RoundTrip(r.WithContext(ctx))
		if !errors.Is(err, context.Canceled) || fresh.Closes() != 1 {
			t.Errorf("got %v, %d closes", err, fresh.Closes())
		}
	})
}

// The key is the same on every attempt, the caller's header is not touched,
// and a request that has one keeps it.
func TestIdempotencyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retry.Config{IdempotencyKey: retry.RandomKey}
		for _, tt := range []struct {
			method, own string
			want        int // attempts
		}{{"POST", "", 3}, {"PATCH", "", 3}, {"GET", "", 3}, {"POST", "mine", 3}, {"CONNECT", "", 1}} {
			s := play(step{status: 500})
			r := request(t, tt.method, "http://a.example/", "")
			if tt.own != "" {
				r.Header.Set("Idempotency-Key", tt.own)
			}
			before := r.Header.Clone()
			newTransport(t, s, c).RoundTrip(r)
			if s.calls() != tt.want || !reflect.DeepEqual(r.Header, before) {
				t.Errorf("%s: %d attempts, want %d; header %v", tt.method, s.calls(), tt.want, r.Header)
			}
			keys := make(map[string]bool)
			for _, q := range s.reqs {
				keys[q.Header.Get("Idempotency-Key")] = true
			}
			wantKey := tt.own != "" || tt.method == "POST" || tt.method == "PATCH"
			if len(keys) != 1 || keys[""] == wantKey || tt.own != "" && !keys[tt.own] {
				t.Errorf("%s: keys %v", tt.method, keys)
			}
		}
		if a, b := retry.RandomKey(nil), retry.RandomKey(nil); a == b || len(a) != 36 || a[14] != '4' {
			t.Errorf("keys %q, %q", a, b)
		}
		none := retry.Config{IdempotencyKey: func(*http.Request) string { return "" }}
		s := play(step{status: 500})
		newTransport(t, s, none).RoundTrip(request(t, "POST", "http://a.example/", ""))
		if s.calls() != 1 {
			t.Errorf("without a key: %d attempts", s.calls())
		}
	})
}

// What an outer layer of the chain sent on is not changed either.
func TestKeyLeavesOuterRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 200})
		var outer *http.Request
		d := &door{newTransport(t, s, retry.Config{IdempotencyKey: retry.RandomKey}), func(r *http.Request, _ *trip.Trip) { outer = r }}
		if status, err := get(t, d, "POST"); status != 200 || s.reqs[0].Header.Get("Idempotency-Key") == "" {
			t.Errorf("got %d, %v", status, err)
		}
		if len(outer.Header) != 0 {
			t.Errorf("the outer request has %v", outer.Header)
		}
	})
}

// A hook that panics leaves no body open.
func TestPanicClosesBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("12345")
		r := request(t, "PUT", "http://a.example/", "")
		r.Body = body
		answer := testnet.NewBody("sorry")
		rt := newTransport(t, play(step{status: 503, body: answer}), retry.Config{OnAttempt: func(retry.Attempt) { panic("hook") }})
		func() {
			defer func() { recover() }()
			rt.RoundTrip(r)
		}()
		if body.Closes() != 1 {
			t.Errorf("the body was closed %d times", body.Closes())
		}
		if answer.Closes() == 0 {
			t.Error("the answer was not closed")
		}
	})
}

// A hook that panics before anything was sent leaves no body open.
func TestPanicOfKeyClosesBody(t *testing.T) {
	body := testnet.NewBody("x")
	r := request(t, "POST", "http://a.example/", "")
	r.Body = body
	rt := newTransport(t, play(step{status: 200}), retry.Config{IdempotencyKey: func(*http.Request) string { panic("hook") }})
	func() {
		defer func() {
			if recover() != "hook" {
				t.Error("the panic did not pass")
			}
		}()
		rt.RoundTrip(r)
	}()
	if body.Closes() == 0 {
		t.Error("the body was left open")
	}
}

// An entry without a value says, as to net/http, that the request may be repeated
// and that no key is to be sent.
func TestIdempotentWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			for _, c := range []retry.Config{{}, {IdempotencyKey: retry.RandomKey}} {
				s := play(step{status: 500})
				r := request(t, "POST", "http://a.example/", "")
				r.Header[name] = nil
				newTransport(t, s, c).RoundTrip(r)
				if got := s.reqs[0].Header.Get("Idempotency-Key"); s.calls() != 3 || got != "" {
					t.Errorf("%s: %d attempts with key %q, want 3 without", name, s.calls(), got)
				}
			}
		}
	})
}
