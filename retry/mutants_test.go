package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// Tests in this file were written for changes of the code that no other test
// noticed; docs/testing-weir.md says how they are found.

// The two timeouts say which of them it was.
func TestTimeoutErrorText(t *testing.T) {
	for body, want := range map[bool]string{
		false: "retry: a.example: no response headers within 30s",
		true:  "retry: a.example: response body stalled for 30s",
	} {
		if got := (&TimeoutError{Host: "a.example", Limit: 30 * time.Second, Body: body}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The base learns from the context's cause why its attempt was ended.
func TestAttemptTimeoutIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			cause = context.Cause(r.Context())
			return nil, r.Context().Err()
		})
		rt := newTransport(t, base, Config{MaxAttempts: 1, AttemptTimeout: time.Second})
		if _, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err == nil {
			t.Fatal("no error")
		}
		var timeout *TimeoutError
		if !errors.As(cause, &timeout) || timeout.Limit != time.Second {
			t.Errorf("the cause was %v", cause)
		}
	})
}

// No vote makes a POST repeatable, and the hook is told why there was no retry.
func TestUnsafeIsSaid(t *testing.T) {
	yes := func(context.Context, *http.Response, error) (bool, error) { return true, nil }
	for name, c := range map[string]Config{"policy": {}, "Check": {Check: yes}} {
		bubble(t, name, func(t *testing.T) {
			var reasons []Reason
			c.OnAttempt = func(a Attempt) { reasons = append(reasons, a.Reason) }
			s := play(step{status: 500})
			resp, err := newTransport(t, s, c).RoundTrip(request(t, "POST", "http://a.example/", "x"))
			if err != nil || resp.StatusCode != 500 || s.calls() != 1 {
				t.Fatalf("%v, %v after %d attempts", resp, err, s.calls())
			}
			if len(reasons) != 1 || reasons[0] != Unsafe {
				t.Errorf("reasons %v, want %v", reasons, Unsafe)
			}
		})
	}
}

// Hedges are counted for the transport and for the host.
func TestHedgesCountForTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{1500 * time.Millisecond, 200}}}
		rt := newTransport(t, d, Config{Hedge: Hedge{After: time.Second}})
		get(t, rt, "GET")
		if st := rt.Stats(); st.Hedges != 1 || st.Hosts["a.example"].Hedges != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// Wire hands on what a layer below it says about waiting.
func TestWireAsksBelow(t *testing.T) {
	layer := &fakeLayer{base: play(step{status: 200}), layer: trip.Meter,
		outlook: func(*http.Request) (time.Duration, error) { return time.Minute, errReset }}
	wait, err := trip.Outlook(Wire(layer, Config{}), request(t, "GET", "http://a.example/", ""))
	if wait != time.Minute || err != errReset {
		t.Errorf("got %v, %v; the layer below said 1m0s and an error", wait, err)
	}
}

// A hook that panics before anything was sent leaves no body open.
func TestPanicOfKeyClosesBody(t *testing.T) {
	body := testnet.NewBody("x")
	r := request(t, "POST", "http://a.example/", "")
	r.Body = body
	rt := newTransport(t, play(step{status: 200}), Config{IdempotencyKey: func(*http.Request) string { panic("hook") }})
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

// An answer too long to be kept is closed unread before the next attempt.
func TestLongDiscardedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody(strings.Repeat("x", holdBytes+1))
		n := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n > 1 {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			resp := testnet.Answer(r, 503, nil, body)
			resp.ContentLength = holdBytes + 1
			return resp, nil
		})
		resp, err := newTransport(t, base, Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if body.Reads() != 0 || body.Closes() != 1 {
			t.Errorf("%d reads, %d closes of the answer before", body.Reads(), body.Closes())
		}
	})
}

// halves is a connection whose writing side can be closed alone.
type halves struct {
	io.ReadWriteCloser
	closed int
}

func (h *halves) CloseWrite() error {
	h.closed++
	return errReset
}

// CloseWrite of a switched connection is the connection's, if it has one.
func TestDuplexCloseWrite(t *testing.T) {
	h := new(halves)
	if err := (&duplex{w: h}).CloseWrite(); err != errReset || h.closed != 1 {
		t.Errorf("got %v after %d calls", err, h.closed)
	}
	if err := (&duplex{w: struct{ io.ReadWriteCloser }{}}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v of a connection without", err)
	}
}

// Settings given to a host later hold from its next request on.
func TestLaterSettingsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		rt := newTransport(t, s, Config{})
		for i, attempts := range []int{2, 1, 3, 1} {
			if err := rt.SetHost("a.example", Config{MaxAttempts: attempts}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				before := s.calls()
				resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if got := s.calls() - before; got != attempts {
					t.Errorf("settings %d: %d attempts, want %d", i, got, attempts)
				}
			}
		}
	})
}

// A body that fits the buffer exactly can be had again by net/http, too.
func TestBufferedBodyHasGetBody(t *testing.T) {
	for length, want := range map[int]bool{3: true, 4: false} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = testnet.NewBody(strings.Repeat("x", length)), int64(length)
			s := play(step{status: 200})
			resp, err := newTransport(t, s, Config{BufferBody: 3}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := s.reqs[0].GetBody != nil; got != want {
				t.Errorf("a body of %d bytes, 3 kept: GetBody %v, want %v", length, got, want)
			}
		})
	}
}
