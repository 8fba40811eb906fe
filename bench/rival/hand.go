package rival

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/weirhttp/weir/bench/wait"
)

// Hand is the round tripper that many teams write: x/time/rate's Wait,
// gobreaker's Execute, cenkalti/backoff, and Retry-After in seconds. One for
// all hosts, as it is usually written.
func Hand() Rival {
	return Rival{
		Name:   "hand-made",
		Link:   "https://github.com/sony/gobreaker#usage",
		Entry:  "RoundTrip",
		Module: "github.com/sony/gobreaker/v2",
		Known:  "hand-made",
		New: func(base http.RoundTripper, p Policy) (Client, error) {
			h := &hand{base: base, policy: p, breaker: gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{
				Timeout:     p.OpenFor,
				ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(p.Failures) },
			})}
			if p.Rate.Limit > 0 {
				h.limit = limiter(p.Rate)
			}
			return of(h), nil
		},
	}
}

type hand struct {
	base    http.RoundTripper
	policy  Policy
	limit   *rate.Limiter
	breaker *gobreaker.CircuitBreaker[*http.Response]
}

var errStatus = errors.New("server error")

func (h *hand) RoundTrip(r *http.Request) (*http.Response, error) {
	var delays backoff.BackOff // made at the first failure: most requests have none
	for n := 0; ; n++ {
		resp, err := h.attempt(r)
		again := resp != nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500) ||
			resp == nil && !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests)
		if !again || n >= h.policy.Retries || r.Body != nil && r.GetBody == nil {
			if resp != nil {
				return resp, nil
			}
			return nil, err
		}
		if delays == nil {
			delays = backoff.NewExponentialBackOff(backoff.WithInitialInterval(h.policy.Base), backoff.WithMultiplier(2), backoff.WithMaxInterval(h.policy.Max))
		}
		d := delays.NextBackOff()
		if resp != nil {
			if told, ok := retryAfter(resp); ok {
				d = told
			}
			drop(resp)
		}
		if err := wait.For(r.Context(), d); err != nil {
			return nil, err
		}
		if r.GetBody != nil {
			r = r.Clone(r.Context())
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

func (h *hand) attempt(r *http.Request) (*http.Response, error) {
	if h.limit != nil {
		if err := h.limit.Wait(r.Context()); err != nil {
			return nil, err
		}
	}
	return h.breaker.Execute(func() (*http.Response, error) {
		resp, err := h.send(r)
		if err == nil && resp.StatusCode >= 500 {
			return resp, errStatus
		}
		return resp, err
	})
}

// send bounds the wait for the headers only; a context with a deadline would
// have to live as long as the body.
func (h *hand) send(r *http.Request) (*http.Response, error) {
	if h.policy.Timeout == 0 {
		return h.base.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	t := time.AfterFunc(h.policy.Timeout, cancel)
	resp, err := h.base.RoundTrip(r.WithContext(ctx))
	if t.Stop(); err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelling{resp.Body, cancel}
	return resp, nil
}
