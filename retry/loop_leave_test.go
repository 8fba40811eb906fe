package retry_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// A caller who leaves during a delay finds his cause in the error, as he would if
// he left during an attempt.
func TestCauseDuringADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, play(step{status: 503, header: "Retry-After: 5"}), retry.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errReset) })
		_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		var e *retry.Error
		if !errors.As(err, &e) || e.Reason != retry.Ended || !errors.Is(err, context.Canceled) || !errors.Is(err, errReset) {
			t.Errorf("got %v", err)
		}
	})
}

// A caller who closes Request.Cancel during a delay wants no answer any more,
// not even the one that is at hand.
func TestCancelDuringADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, play(step{status: 503, header: "Retry-After: 5", body: testnet.NewBody("busy")}), retry.Config{})
		r := request(t, "GET", "http://a.example/", "")
		cancel := make(chan struct{})
		r.Cancel = cancel //lint:ignore SA1019 old callers still set it
		time.AfterFunc(time.Second, func() { close(cancel) })
		start := time.Now()
		resp, err := rt.RoundTrip(r)
		var e *retry.Error
		if resp != nil || !errors.As(err, &e) || e.Reason != retry.Ended || !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("got %v, %v after %v", resp, err, time.Since(start))
		}
	})
}

// Nor does he if he closes it during a later attempt, but at his deadline he may
// learn from it: http.Client closes it then.
func TestCancelDuringALaterAttempt(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			first := play(step{status: 503, body: testnet.NewBody("busy")})
			rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if len(first.times) == 0 {
					return first.RoundTrip(r)
				}
				<-r.Cancel //lint:ignore SA1019 old callers still set it
				return nil, errReset
			}), retry.Config{})
			r := request(t, "GET", "http://a.example/", "")
			cancel := make(chan struct{})
			r.Cancel = cancel //lint:ignore SA1019 old callers still set it
			time.AfterFunc(time.Second, func() { close(cancel) })
			ctx := &undue{Context: t.Context()}
			if late {
				ctx.at = time.Now().Add(time.Second)
			}
			resp, err := rt.RoundTrip(r.WithContext(ctx))
			var e *retry.Error
			switch {
			case late && (err != nil || resp.StatusCode != 503):
				t.Errorf("at the deadline: got %v, %v", resp, err)
			case !late && (resp != nil || !errors.As(err, &e) || e.Reason != retry.Ended || !errors.Is(err, errReset) || !errors.Is(err, context.Canceled)):
				t.Errorf("got %v, %v", resp, err)
			}
		})
	}
}

// A deadline of which only Cancel tells is one all the same.
func TestCancelAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n == 2 {
				<-r.Cancel //lint:ignore SA1019 old callers still set it
			}
			return nil, errReset
		}), retry.Config{})
		r := request(t, "GET", "http://a.example/", "")
		cancel := make(chan struct{})
		r.Cancel = cancel //lint:ignore SA1019 old callers still set it
		time.AfterFunc(time.Second, func() { close(cancel) })
		_, err := rt.RoundTrip(r.WithContext(&undue{t.Context(), time.Now().Add(time.Second)}))
		var e *retry.Error
		if !errors.As(err, &e) || e.Reason != retry.Ended || !errors.Is(err, context.DeadlineExceeded) || !e.Timeout() {
			t.Errorf("got %v", err)
		}
	})
}

// undue is a context whose deadline has passed before it knows.
type undue struct {
	context.Context
	at time.Time
}

func (u *undue) Deadline() (time.Time, bool) { return u.at, !u.at.IsZero() }
