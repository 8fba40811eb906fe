package retry_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// Without one of the two timeouts the other holds.
func TestOneTimeoutAlone(t *testing.T) {
	for name, c := range map[string]retry.Config{
		"headers": {MaxAttempts: 1, AttemptTimeout: time.Second, StallTimeout: -1},
		"body":    {MaxAttempts: 1, AttemptTimeout: -1, StallTimeout: time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if name == "body" {
					return testnet.Answer(r, 200, nil, &stalled{r.Context()}), nil
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			start := time.Now()
			resp, err := newTransport(t, base, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if name == "body" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = resp.Body.Read(make([]byte, 1))
			}
			var late *retry.TimeoutError
			if !errors.As(err, &late) || late.Body != (name == "body") || time.Since(start) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	}
}

// What is timed on a bubble's clock stays in that bubble.
func TestClocksStayInTheirBubble(t *testing.T) {
	hang := testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.Method == "GET" {
			return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	w := retry.Wire(hang, retry.Config{AttemptTimeout: time.Hour, StallTimeout: time.Hour})
	get := func(t *testing.T) {
		for range 3 {
			resp, err := w.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
		}
	}
	get(t)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			get(t)
			start := time.Now()
			_, err := w.RoundTrip(request(t, "PUT", "http://a.example/", ""))
			if took := time.Since(start); err == nil || took != time.Hour {
				t.Errorf("%v after %v", err, took)
			}
			get(t)
		})
		get(t)
	}
}

// stalled is a body whose Read lasts until its request's end.
type stalled struct{ ctx context.Context }

func (s *stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s *stalled) Close() error { return nil }

// The two timeouts say which of them it was.
func TestTimeoutErrorText(t *testing.T) {
	for body, want := range map[bool]string{
		false: "retry: a.example: no response headers within 30s",
		true:  "retry: a.example: response body stalled for 30s",
	} {
		if got := (&retry.TimeoutError{Host: "a.example", Limit: 30 * time.Second, Body: body}).Error(); got != want {
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
		rt := newTransport(t, base, retry.Config{MaxAttempts: 1, AttemptTimeout: time.Second})
		if _, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err == nil {
			t.Fatal("no error")
		}
		var timeout *retry.TimeoutError
		if !errors.As(cause, &timeout) || timeout.Limit != time.Second {
			t.Errorf("the cause was %v", cause)
		}
	})
}

// An attempt timeout is retried for what may happen twice only; the breaker
// below learns from the trip that it was ours.
func TestPolicyAttemptTimeout(t *testing.T) {
	for method, want := range map[string]int{"GET": 2, "POST": 1} {
		bubble(t, method, func(t *testing.T) {
			calls := 0
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				calls++
				<-r.Context().Done()
				return nil, r.Context().Err() // as HTTP/2 says it, without the cause
			})
			var causes []trip.Cause
			meter := &fakeLayer{base: retry.Wire(base, retry.Config{}), layer: trip.Meter}
			spy := testnet.Func(func(r *http.Request) (*http.Response, error) {
				resp, err := meter.RoundTrip(r)
				causes = append(causes, trip.From(r.Context()).Cause())
				return resp, err
			})
			rt := newTransport(t, linked{spy, meter}, retry.Config{MaxAttempts: 2, AttemptTimeout: time.Second})
			start := time.Now()
			_, err := rt.RoundTrip(request(t, method, "http://a.example/", ""))
			var late *retry.TimeoutError
			if !errors.As(err, &late) || late.Body || late.Limit != time.Second {
				t.Errorf("got error %v, want an attempt timeout of 1s", err)
			}
			if calls != want || len(causes) != want || causes[0] != trip.AttemptTimeout {
				t.Errorf("got %d calls, causes %v, want %d", calls, causes, want)
			}
			if took := time.Since(start); took < time.Duration(want)*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// linked is a RoundTripper that speaks for the layers below it.
type linked struct {
	http.RoundTripper
	trip.Linked
}
