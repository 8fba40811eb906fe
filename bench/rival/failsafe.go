package rival

import (
	"errors"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/timeout"
)

// Failsafe is failsafe-go with its full stack: retry, breaker, limiter,
// timeout, outermost first. It keeps one state for all hosts. Its bursty
// limiter serves windows, its smooth one everything else.
func Failsafe() Rival {
	return Rival{
		Name:   "failsafe-go",
		Link:   "https://failsafe-go.dev/http/",
		Entry:  "RoundTrip",
		Module: "github.com/failsafe-go/failsafe-go",
		Known:  "failsafe-go",
		New: func(base http.RoundTripper, p Policy) (Client, error) {
			return of(failsafehttp.NewRoundTripper(base, failsafePolicies(p)...)), nil
		},
	}
}

func failsafePolicies(p Policy) []failsafe.Policy[*http.Response] {
	retries := failsafehttp.NewRetryPolicyBuilder().
		WithBackoff(p.Base, p.Max).
		WithJitterFactor(.25).
		WithMaxRetries(p.Retries).
		AbortOnErrors(circuitbreaker.ErrOpen, ratelimiter.ErrExceeded).
		ReturnLastFailure().
		Build()
	breaker := circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool {
			return err != nil && !errors.Is(err, ratelimiter.ErrExceeded) || resp != nil && resp.StatusCode >= 500
		}).
		WithFailureThreshold(uint(p.Failures)).
		WithSuccessThreshold(1).
		WithDelay(p.OpenFor).
		Build()
	policies := []failsafe.Policy[*http.Response]{retries, breaker}
	if r := p.Rate; r.Limit > 0 {
		b := ratelimiter.NewSmoothBuilder[*http.Response](uint(r.Limit), r.Per)
		if r.Bucket == 0 {
			b = ratelimiter.NewBurstyBuilder[*http.Response](uint(r.Limit), r.Per)
		}
		policies = append(policies, b.WithMaxWaitTime(75*time.Second).Build())
	}
	if p.Timeout > 0 {
		policies = append(policies, timeout.New[*http.Response](p.Timeout))
	}
	return policies
}
