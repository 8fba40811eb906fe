package retry

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	baseDelay = 100 * time.Millisecond // as MongoDB's drivers; the AWS SDKs have half of it
	capDelay  = 20 * time.Second       // as the AWS SDKs
	maxJitter = 30 * time.Second       // half of the window of a minute after which most are told to come back: wider, they would come in the next one
)

// fullJitter is uniform in [0, base*2^n], at most capDelay. The interval of an
// ExponentialBackOff with randomization 1 is the middle of that range.
func fullJitter() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(baseDelay/2),
		backoff.WithMaxInterval(capDelay/2),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(1),
		backoff.WithMaxElapsedTime(0),
	)
}

// policyDelay asks Delay or Backoff; ok is false if they end the retries.
func (l *loop) policyDelay(resp *http.Response) (d time.Duration, ok bool) {
	if l.c.Delay != nil {
		return min(max(l.c.Delay(0, l.c.MaxDelay, l.retries, resp), 0), l.c.MaxDelay), true
	}
	if l.backoff == nil {
		l.backoff = l.c.Backoff()
		l.backoff.Reset()
	}
	d = l.backoff.NextBackOff()
	return min(d, l.c.MaxDelay), d >= 0
}

// jitter spreads those who were all told the same wait: up to half of it, at
// least a second, doubling with each retry, but not more than there is room
// for: those with little room spread over what they have.
func jitter(wait time.Duration, n int, room time.Duration) time.Duration {
	spread := max(time.Second, wait/2)
	for ; n > 0 && spread < maxJitter; n-- {
		spread *= 2
	}
	return rand.N(max(1, min(spread, maxJitter, room)))
}

// delay returns how long to wait before the next attempt: never less than
// the server asked for.
func (l *loop) delay(resp *http.Response, server time.Duration, now time.Time) (time.Duration, DelayBy, Reason) {
	d, ok := l.policyDelay(resp)
	if !ok {
		return 0, Nothing, Declined
	}
	if server <= d {
		return d, Backoff, Again
	}
	if server > l.c.MaxDelay {
		return server, Server, TooLong
	}
	room := l.c.MaxDelay - server
	if deadline, ok := l.ctx.Deadline(); ok {
		room = min(room, (deadline.Sub(now)-server)/2) // half of what is left is for the attempt
	}
	return server + jitter(server, l.retries, room), Server, Again
}
