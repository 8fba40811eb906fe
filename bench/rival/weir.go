package rival

import (
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// Weir is this library, all layers on.
func Weir() Rival {
	return Rival{
		Name:   "weir",
		Link:   "https://github.com/weirhttp/weir#use",
		Entry:  "RoundTrip",
		Module: "github.com/weirhttp/weir",
		Known:  "weir",
		New:    newWeir,
	}
}

func newWeir(base http.RoundTripper, p Policy) (Client, error) {
	c := weir.Config{
		Retry: retry.Config{
			MaxAttempts: p.Retries + 1,
			Backoff: func() backoff.BackOff {
				// Full jitter, as is weir's own, with the policy's figures.
				return backoff.NewExponentialBackOff(backoff.WithInitialInterval(p.Base/2), backoff.WithMultiplier(2),
					backoff.WithRandomizationFactor(1), backoff.WithMaxInterval(p.Max/2), backoff.WithMaxElapsedTime(0))
			},
			AttemptTimeout: p.Timeout,
		},
		Breaker: breaker.Config{Consecutive: p.Failures, OpenFor: p.OpenFor, Patience: p.Patience},
	}
	if p.Timeout == 0 {
		c.Retry.AttemptTimeout, c.Retry.StallTimeout = -1, -1
		c.Breaker.Window = 30 * time.Second
	}
	if r := p.Rate; r.Limit > 0 {
		rate := throttle.Rate{Limit: r.Limit, Per: r.Per, Bucket: r.Bucket}
		if r.Bucket == 0 {
			rate.Burst = r.Limit // spend the window as it comes: no more than Limit in any window all the same
		}
		c.Throttle.Default.Rates = []throttle.Rate{rate}
	}
	t, err := weir.New(base, c)
	if err != nil {
		return Client{}, err
	}
	return Client{Do: t.RoundTrip, Close: func() { t.Close() }}, nil
}
