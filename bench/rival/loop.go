package rival

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// Loop is the loop that most programs write: some attempts, Retry-After in
// seconds where there is one, else exponential backoff with full jitter.
func Loop() Rival {
	return plain("plain loop", "https://www.rfc-editor.org/rfc/rfc9110#field.retry-after", func() (pacing, func() float64) { return unpaced{}, nil })
}

// plain is a loop over attempts that a pacing holds back, and the rate that it
// has found, if it looks for one.
func plain(name, link string, p func() (pacing, func() float64)) Rival {
	return Rival{Name: name, Link: link, Entry: "RoundTrip", New: func(base http.RoundTripper, policy Policy) (Client, error) {
		pacing, rate := p()
		c := of(&loop{base, policy, pacing})
		c.Rate = rate
		return c, nil
	}}
}

// A pacing says when attempts may go, for all requests together.
type pacing interface {
	// enter waits until an attempt may go.
	enter(ctx context.Context) error
	// heard is told how an attempt ended, and how long the server said to wait.
	heard(throttled bool, told time.Duration)
	// alone reports whether a refused request waits for itself, too.
	alone() bool
}

type unpaced struct{}

func (unpaced) enter(context.Context) error { return nil }
func (unpaced) heard(bool, time.Duration)   {}
func (unpaced) alone() bool                 { return true }

type loop struct {
	base   http.RoundTripper
	policy Policy
	pacing pacing
}

func (l *loop) RoundTrip(r *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		if err := l.pacing.enter(r.Context()); err != nil {
			return nil, err
		}
		resp, err := l.base.RoundTrip(r)
		throttled := resp != nil && isThrottled(resp)
		told, hinted := time.Duration(0), false
		if throttled {
			told, hinted = retryAfter(resp)
		}
		l.pacing.heard(throttled, told)
		if err == nil && !throttled && resp.StatusCode < 500 || n >= l.policy.Retries || r.Body != nil {
			return resp, err
		}
		drop(resp)
		if l.pacing.alone() || !throttled {
			d := fullJitter(l.policy, n)
			if hinted {
				d = told
			}
			if err := wait.For(r.Context(), d); err != nil {
				return nil, err
			}
		}
	}
}

// isThrottled knows the two statuses, and the 403 of GitHub and others.
func isThrottled(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"
	}
	return false
}

// fullJitter is the delay after the n-th failure.
func fullJitter(p Policy, n int) time.Duration {
	return time.Duration(rand.Float64() * math.Min(float64(p.Max), float64(p.Base)*math.Pow(2, float64(n))))
}
