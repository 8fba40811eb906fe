package sim

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/bench/rival"
)

// library makes a whole library into a strategy, as folder rival configures
// it. Only those can run in virtual time that leave no goroutine behind:
// heimdall's breaker keeps some for as long as the program runs.
func library(r rival.Rival, p rival.Policy) strategy {
	name := r.Name
	if p.Rate.Limit > 0 {
		name = r.Known
	}
	return strategy{name, func(s *server, _ uint64) client {
		c, err := r.New(s, p)
		if err != nil {
			panic(err)
		}
		return &libraryClient{c.Do, c.Rate}
	}}
}

type libraryClient struct {
	do   func(*http.Request) (*http.Response, error)
	rate func() float64
}

func (c *libraryClient) call(ctx context.Context) bool {
	resp, err := c.do(request(ctx))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == 200
}

// libraries are failsafe-go, all its layers on, go-retryablehttp, which retries
// only, and what many write by hand. All obey Retry-After, and no other header.
func libraries(p rival.Policy) []strategy {
	return []strategy{library(rival.Failsafe(), p), library(rival.Retryable(), p), library(rival.Hand(), p)}
}

// adaptiveRetry is the adaptive mode of the AWS SDKs.
func adaptiveRetry() strategy { return library(rival.Adaptive(), stubborn()) }

// stubborn retries until it succeeds, as the plain strategies do.
func stubborn() rival.Policy {
	return rival.Policy{Retries: 1 << 30, Base: time.Second, Max: 20 * time.Second, Failures: 5, OpenFor: 250 * time.Millisecond}
}

// usual is a few attempts, the first of them soon after one another.
func usual(attempts int, timeout time.Duration) rival.Policy {
	return rival.Policy{Retries: attempts - 1, Base: 100 * time.Millisecond, Max: 20 * time.Second,
		Failures: 5, OpenFor: 250 * time.Millisecond, Timeout: timeout}
}
