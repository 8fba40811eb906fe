// Package rival wraps the libraries that weir is measured against, and weir
// itself, behind one function each. Every one is configured as its own
// documentation recommends (the link stands in its file) and gets the same
// Policy.
package rival

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// A Policy is what every rival is asked to do, as far as it can.
type Policy struct {
	Retries  int           // after the first attempt, of 429, 5xx and errors
	Base     time.Duration // first delay, doubling
	Max      time.Duration // longest delay
	Failures int           // in a row that open the breaker
	OpenFor  time.Duration // until its first probe
	Timeout  time.Duration // of one attempt; zero: none

	// Rate is what the server allows, as far as it is known. Zero: not known,
	// and no limiter is configured.
	Rate Rate

	// Patience is for weir alone: no rival can wait for its breaker.
	Patience time.Duration
}

// A Rate is Limit requests per Per. With Bucket it is a token bucket of that
// size; without, a window.
type Rate struct {
	Limit  int
	Per    time.Duration
	Bucket int
}

// Default is the policy of every scenario that does not say otherwise.
func Default() Policy {
	return Policy{Retries: 3, Base: 100 * time.Millisecond, Max: 5 * time.Second, Failures: 5, OpenFor: 250 * time.Millisecond, Timeout: 10 * time.Second}
}

// A Client is a rival ready for use.
type Client struct {
	Do    func(*http.Request) (*http.Response, error)
	Close func()
	Rate  func() float64 // requests per second that it has found out; zero: not yet. nil: it looks for none
}

// A Rival is one library.
type Rival struct {
	Name   string
	Link   string // what its configuration follows
	Entry  string // the function that is measured
	Module string // whose version is reported; "": the standard library
	Known  string // its name when the rate is known; "": it has no use for one
	New    func(base http.RoundTripper, p Policy) (Client, error)
}

// All returns every rival: bare net/http first, weir second.
func All() []Rival {
	return []Rival{Bare(), Weir(), Hand(), Retryable(), Failsafe(), Heimdall(), Resty()}
}

// of makes a Client of a round tripper.
func of(rt http.RoundTripper) Client { return Client{Do: rt.RoundTrip, Close: func() {}} }

// paced is x/time/rate in front of base, for libraries that have no limiter
// that waits: below their retries, as each attempt draws on the quota.
func paced(base http.RoundTripper, r Rate) http.RoundTripper {
	if r.Limit == 0 {
		return base
	}
	return &pacer{base, limiter(r)}
}

type pacer struct {
	base  http.RoundTripper
	limit *rate.Limiter
}

func (p *pacer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.limit.Wait(r.Context()); err != nil {
		return nil, err
	}
	return p.base.RoundTrip(r)
}

// limiter is r for x/time/rate, which has buckets only: a window of n can be
// kept safely only by a burst of one.
func limiter(r Rate) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(r.Limit)/r.Per.Seconds()), max(r.Bucket, 1))
}

// retryAfter is how most programs read the header: whole seconds.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	return time.Duration(n) * time.Second, err == nil && n >= 0
}

// drop makes the connection of an answer that is not wanted free again.
func drop(resp *http.Response) {
	if resp != nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
	}
}
