package retry

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/trip"
)

// Config says how a Transport repeats requests. Its zero value is the
// documented defaults. It is read once, by New, Wire or SetHost.
type Config struct {
	// MaxAttempts bounds the attempts of one request, the first counted;
	// 1 never retries. An answer that was throttled and is waited out by a
	// throttle below is not counted: that one's MaxWait bounds it. Zero: 3.
	MaxAttempts int

	// Backoff makes the delay policy of one request; it is called at most
	// once per request, before its first delay, and a negative delay ends the
	// retries. nil: full jitter, base 100 ms, doubling, at most 20 s.
	Backoff func() backoff.BackOff

	// Delay is used instead of Backoff, which must then be nil. It is called
	// with 0 and MaxDelay, and with attempts counted from 0; what it returns
	// is cut to that range and raised to the server's Retry-After. It may look
	// at the response but not at its body. retryablehttp's own begin at their
	// first argument: give them one, or DefaultBackoff does not wait at all.
	Delay retryablehttp.Backoff

	// Check decides after each attempt, also a successful one, whether to retry,
	// instead of the table in the package comment. It sees the caller's context
	// and errors as http.Client would show them. If it says no, the request is not
	// retried. If it says yes, the request is retried only if it may be processed
	// twice and the server does not forbid it. (false, err) ends the request with
	// err. nil: the table.
	Check retryablehttp.CheckRetry

	// MaxDelay is the longest delay. A server that asks for more ends the
	// request with its answer, unread. Zero: 75 s.
	MaxDelay time.Duration

	// AttemptTimeout bounds dialling, sending and the wait for the headers of
	// the answer. Waiting for budget or a circuit does not count, nor does
	// waiting for one of http.Transport's MaxConnsPerHost while others have
	// them: the caller's context bounds these. Dialling and the wait for the
	// headers share it, so what a dial took is not left for the headers; an
	// attempt that gets a connection which another has left has all of it.
	// While the request's body is sent it counts from when the body was last
	// read, so an upload may take as long as it goes on, and the headers are
	// due that long after its end. (Of a body in memory of up to 64 KiB the
	// beginning counts.) An interim answer, such as 102 Processing, begins it anew.
	//
	// If a timer fires late, this process stood still. The attempt then has
	// AttemptTimeout once more, because its answer may have come and not been read
	// yet. If it fails, that does not count as a failure of the host.
	//
	// If the Read of the request's own body blocks for as long, the body is
	// closed. If that does not end its Read, HTTP/1 waits for it past every
	// deadline (golang.org/issue/78555). It does not with io.NopCloser, which
	// http.NewRequest puts around a reader that cannot be closed. Zero: 30 s;
	// negative: none.
	AttemptTimeout time.Duration

	// StallTimeout bounds one blocked Read of a response body. A body of which
	// something keeps coming is never cut off, however long it takes. Nor is one
	// whose caller does not read, what follows a 101, or a stream of messages,
	// which may be silent for any time: server-sent events, gRPC, Connect, JSON
	// lines, multipart/x-mixed-replace, a watch of Kubernetes and the like.
	// Streams are recognised by the Content-Type, or by watch=true or follow=true
	// in the query. A Read that is cut off returns a *TimeoutError. With changes
	// it for one request. Zero: 60 s; negative: none.
	StallTimeout time.Duration

	// BufferBody is how many bytes of a request body without GetBody may be
	// kept, as they are sent, to be sent again. Bodies that can be read at an
	// offset (files) need none, unless their type embeds what can: its Read may
	// be another. Zero: none.
	BufferBody int64

	// Allowance pays for retries and hedges.
	Allowance Allowance

	// Hedge sends a second attempt beside a slow first one. Zero: off.
	Hedge Hedge

	// IdempotencyKey, if not nil, returns the key of each POST and PATCH that has
	// no Idempotency-Key yet. All attempts of the request carry the same key, so
	// the request is safe to repeat if the server knows that header. It must not
	// be set for a server that does not. "" leaves the request without a key.
	// RandomKey is one such function. nil: no keys.
	IdempotencyKey func(*http.Request) string

	// Prepare is called with what is sent next, before each attempt, and with
	// how many there were before it: to sign it anew, say. The request is a copy
	// that keeps what was changed before, with a Header and a URL of its own. Its
	// Body is not to be touched, nor its URL's host. An error ends the request with
	// that error. A hedge is sent as its first attempt was prepared. nil: not called.
	Prepare func(r *http.Request, before int) error

	// GiveUp is called for a request that ended in an error, or with an answer
	// after which Check, or the table, wanted another attempt. It gets the last
	// answer, if there is one, the error, if there is one, and the number of
	// attempts. It returns what the caller gets, an answer or an error. It closes
	// the body of an answer that it replaces. It is not called when the caller has
	// left. nil: the last answer, or else the error.
	GiveUp func(resp *http.Response, err error, attempts int) (*http.Response, error)

	// OnAttempt is called after each attempt, before the delay. It is called
	// on the caller's goroutine without a lock held and should be brief.
	OnAttempt func(Attempt)
}

// Allowance is what retries and hedges of one host are paid from, so that they do
// not multiply the load of a host that is down. Such a host gets about Tokens/14
// retries at once and then one every five seconds. A host that fails at random
// gets all attempts that the user allows.
//
// A retry or hedge costs 14 tokens, which come back if it succeeds or is never
// made. A retry that succeeds also brings back those of eight others, unless the
// attempt before it timed out or the host has lately become much slower. So the
// tokens last as long as one retry in nine succeeds and the host is not
// overloaded. A request that succeeds at the first try earns 1 token, and each
// second earns 3. If Check or the server wants another attempt, the answer is no
// success.
type Allowance struct {
	Tokens  int  // the most there can be, and what a host starts with; at least 14. Zero: 500
	Disable bool // retries are free
}

// Hedge says when a second attempt is sent beside the first: for idempotent or
// keyed requests whose body can be sent again, at the first try only, at most
// one, paid from the Allowance, and only if the layers below have room for it
// now. The first good answer wins; the other attempt is cancelled.
type Hedge struct {
	After    time.Duration // after this delay; with Quantile, until enough is learned. Zero: not at all
	Quantile float64       // after this share of the host's first tries (0.95) have their headers, at least 10 ms, once 100 are known. Zero: only After
}

func (h Hedge) on() bool { return h.After > 0 || h.Quantile > 0 }

// DefaultAttemptTimeout is what an AttemptTimeout of zero means.
const DefaultAttemptTimeout = 30 * time.Second

const (
	defaultAttempts     = 3                // as the AWS SDKs
	defaultMaxDelay     = 75 * time.Second // as throttle.Config.MaxWait: it outlasts a window of a minute
	defaultStallTimeout = 60 * time.Second // as nginx's proxy_read_timeout: a server behind it that is silent for longer is cut off there
	defaultTokens       = 500              // see cost
)

// settings are a Config in which nothing is left to defaults.
type settings struct {
	Config
	limits *trip.Timeouts // the Config's, for Wire
}

// resolve checks c and fills in what zero means.
func (c Config) resolve() (*settings, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	return &settings{c, trip.NewTimeouts(c.AttemptTimeout, c.StallTimeout)}, nil
}

func (c Config) filled() (Config, error) {
	switch {
	case c.MaxAttempts < 0:
		return c, fmt.Errorf("retry: MaxAttempts %d: must not be negative", c.MaxAttempts)
	case c.Backoff != nil && c.Delay != nil:
		return c, fmt.Errorf("retry: Backoff and Delay are both set")
	case c.MaxDelay < 0:
		return c, fmt.Errorf("retry: MaxDelay %v: must not be negative", c.MaxDelay)
	case c.BufferBody < 0:
		return c, fmt.Errorf("retry: BufferBody %d: must not be negative", c.BufferBody)
	case c.Allowance.Tokens < 0 || c.Allowance.Tokens > 0 && c.Allowance.Tokens < cost:
		return c, fmt.Errorf("retry: Allowance.Tokens %d: must be at least %d, the cost of one retry", c.Allowance.Tokens, cost)
	case c.Hedge.After < 0:
		return c, fmt.Errorf("retry: Hedge.After %v: must not be negative", c.Hedge.After)
	case !(c.Hedge.Quantile >= 0 && c.Hedge.Quantile < 1):
		return c, fmt.Errorf("retry: Hedge.Quantile %v: must be at least 0 and below 1", c.Hedge.Quantile)
	}
	c.MaxAttempts = cmp.Or(c.MaxAttempts, defaultAttempts)
	c.MaxDelay = cmp.Or(c.MaxDelay, defaultMaxDelay)
	c.Allowance.Tokens = cmp.Or(c.Allowance.Tokens, defaultTokens)
	c.AttemptTimeout, c.StallTimeout = c.timeouts()
	if c.Backoff == nil {
		c.Backoff = fullJitter
	}
	return c, nil
}

// simple reports that nobody is asked or told about a first attempt that is
// answered well, and none is made beside it.
func (c *Config) simple() bool {
	return c.Check == nil && c.Prepare == nil && c.OnAttempt == nil && c.IdempotencyKey == nil && !c.Hedge.on()
}

// timeouts are the two that Wire needs, with what zero means filled in.
func (c Config) timeouts() (attempt, stall time.Duration) {
	attempt, stall = c.AttemptTimeout, c.StallTimeout
	attempt = cmp.Or(attempt, DefaultAttemptTimeout)
	stall = cmp.Or(stall, defaultStallTimeout)
	return attempt, stall
}
