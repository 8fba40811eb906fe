package breaker

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// Outcome is what an attempt says about its host.
type Outcome uint8

const (
	Default Outcome = iota // from Classify: the table in the package's documentation decides
	Success                // the host works
	Failure                // the host does not work
	Ignore                 // neither
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"default", "success", "failure", "ignore"}
	if int(o) < len(names) {
		return names[o]
	}
	return "invalid"
}

// verdict is how an attempt ended, as a circuit counts it.
type verdict struct {
	outcome    Outcome // never Default
	answered   bool    // the host said something
	alive      bool    // ignored, but a probe may take it as a good sign
	slow       bool
	silent     bool          // a clock on our side ended it before the host said a word
	hasty      bool          // silent: the clock was the caller's deadline
	took       time.Duration // answered: from the wire to the headers; zero: not known
	retryAfter time.Duration // what the server asked for
	why        string        // in words, for a failure
	r          *http.Request // of the attempt
	sent       time.Time     // zero: nobody knows
	route      route         // silent
	heard      sign          // silent: of the host's record
	spoke      time.Time     // silent: when the host last answered, as its record says
	good       time.Time     // of a failure: the newest attempt that succeeded was not sent before
	goodBy     time.Time     // of a failure: nor after
	usual      time.Duration // of a failure: how long the host's answers take at most; zero: not known
	holders    int           // how many requests to the host there are
}

// patientCaller is how long an attempt must have been on the wire before the
// end of its caller's deadline says something about the host: a caller in a
// hurry says nothing.
const patientCaller = time.Second

// attempt is what is known of an attempt that has ended.
type attempt struct {
	cfg   *settings
	trip  *trip.Trip
	r     *http.Request
	resp  *http.Response
	err   error
	begun time.Time // when the Meter handed it on; zero: the Wire knows
	body  *watched  // nil: the request has none
}

// judge applies Classify, or else the table.
func (a *attempt) judge() verdict {
	var v verdict
	slow := a.cfg.SlowCall > 0 && a.lasted(a.cfg.SlowCall) // before a body is looked at
	switch {
	case a.resp != nil:
		v = a.answer()
	case a.err != nil:
		v = a.failure()
	default:
		v.outcome = Ignore // a base that breaks the contract
	}
	if f := a.cfg.Classify; f != nil {
		switch o := f(a.resp, a.err); o {
		case Success, Failure, Ignore:
			if o != v.outcome {
				v.outcome, v.alive = o, false
				if v.why == "" {
					v.why = "classified so"
				}
				if o == Failure && a.resp != nil {
					s, _ := a.signal()
					v.retryAfter = s.RetryAfter.Value
				}
			}
		}
	}
	v.slow = slow && v.outcome != Ignore
	v.sent = a.sent()
	if v.silent = v.silent && v.outcome == Failure && !v.sent.IsZero(); v.silent {
		v.route = routeOf(a.r)
	}
	return v
}

// sent is when the attempt reached the wire; zero if nobody knows.
func (a *attempt) sent() time.Time {
	if since := a.trip.OnWire(); !since.IsZero() {
		return since
	}
	return a.begun
}

// lasted reports whether the attempt was on the wire for d or longer.
func (a *attempt) lasted(d time.Duration) bool {
	since := a.sent()
	return !since.IsZero() && time.Since(since) >= d
}

// answer judges a response. What a throttle above takes for throttled is no
// failure, whatever its status.
func (a *attempt) answer() verdict {
	v := verdict{outcome: Success, answered: true}
	if since := a.sent(); !since.IsZero() {
		v.took = time.Since(since)
	}
	s, ruled := a.signal()
	switch code := a.resp.StatusCode; {
	case code == http.StatusTooManyRequests && !ruled, code == http.StatusRequestTimeout, s.Throttled && (ruled || code == http.StatusOK):
		v.outcome, v.alive = Ignore, true
	case code < 500 || code > 599, code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
	default:
		v.outcome, v.why = Failure, "status "+strconv.Itoa(code)
		v.retryAfter = s.RetryAfter.Value
		switch {
		case code == http.StatusServiceUnavailable && s.RetryAfter.Known:
			v.outcome = Ignore
		case s.Throttled && (s.Kind == headers.Quota || s.Kind == headers.Concurrency || code == http.StatusServiceUnavailable):
			v.outcome, v.alive = Ignore, true
		}
	}
	return v
}

// signal is what the answer says. A throttle above also looks into its body:
// some servers say only there that a 503 is no outage (S3: SlowDown). ruled
// tells that its user decided whether the answer was throttled.
func (a *attempt) signal() (s headers.Signal, ruled bool) {
	if said := a.trip.Hear(a.resp); said != nil {
		return said.Signal, said.Ruled
	}
	return headers.Parse(a.resp, time.Now()), false
}

// failure judges an error.
func (a *attempt) failure() verdict {
	ignored := verdict{outcome: Ignore}
	failed := verdict{outcome: Failure, why: "no answer"}
	// No route is to blame where there was no connection.
	silent := verdict{outcome: Failure, silent: a.trip.Stage != trip.Dialling}
	cause := a.trip.Cause()
	switch {
	case notsent.Refused(a.err) != notsent.Nobody, cause == trip.LostHedge:
		return ignored
	case a.trip.Stage == trip.Frozen: // it is this process that stood still
		return ignored
	case cause == trip.AttemptTimeout && a.body.blocked():
		return ignored
	case cause == trip.AttemptTimeout:
		silent.why = "attempt timed out"
		return silent
	}
	if err := a.ended(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && a.lasted(patientCaller) && !a.body.blocked() {
			silent.hasty, silent.why = true, "deadline exceeded on the wire"
			return silent
		}
		return ignored
	}
	if cause == trip.CallerDone || errors.Is(a.err, context.Canceled) || a.body.failed() || malformed(a.r, a.body.begun()) {
		return ignored
	}
	return failed
}

// ended is the error of the request's context, which descends from the
// caller's.
func (a *attempt) ended() error {
	ctx := a.r.Context()
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) { // a dial knows before the context does
		return context.DeadlineExceeded
	}
	if left(a.r) {
		return context.Canceled
	}
	return nil
}

// left reports whether a caller of the old kind has given up.
func left(r *http.Request) bool {
	select {
	case <-cancelled(r):
		return true
	default:
		return false
	}
}

// cancelled is closed when a caller of the old kind gives up.
func cancelled(r *http.Request) <-chan struct{} {
	//lint:ignore SA1019 callers may still use it, and http.Client does for its timeout
	return r.Cancel
}

// malformed reports that no host is to blame for the failure of r. Trailers of a
// body that was begun may be written at this moment, as it is read.
func malformed(r *http.Request, begun bool) bool {
	if r.URL == nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" || !token(r.Method) && r.Method != "" {
		return true
	}
	fields := [...]http.Header{r.Header, r.Trailer}
	if begun {
		fields[1] = nil
	}
	for _, h := range fields {
		for name, values := range h {
			if !token(name) {
				return true
			}
			for _, v := range values {
				if strings.ContainsFunc(v, control) {
					return true
				}
			}
		}
	}
	return r.Header == nil
}

// token reports whether s is a token (RFC 9110, section 5.6.2).
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// control reports a rune that no field value may contain.
func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
