package retry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir/internal/plain"
	"github.com/weirhttp/weir/internal/trip"
)

// Error is returned when several attempts brought no response. It is also returned
// when the first attempt failed and something kept the policy from repeating it. A
// failure that the policy never repeats keeps its own error.
//
// Its text names the host and each attempt, never a URL.
type Error struct {
	Host     string
	Attempts int     // how many were made, refused ones not counted
	Tried    []Tried // how each ended, in order; a hedge only if it won
	Reason   Reason  // why there was no further attempt
	Err      error   // of the last attempt, or why there was none; found by errors.Is and As

	ended   error // the caller's context's, if that is why
	cause   error // the caller's word for that
	refusal error // by which a layer below would have met the next attempt, if that is why
}

// Tried is how one attempt ended.
type Tried struct {
	Outcome Outcome
	Status  int   // zero: no response
	Err     error // nil: there was a response
}

// Error lists the attempts: "retry: api.example.com: no response after 3
// attempts (503; EOF, 2 times): no attempts left". If a layer below would have
// refused another, it says so: "(EOF): not repeated: breaker: api.example.com:
// circuit is open, for another 8s".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("retry: ")
	if e.Host != "" {
		b.WriteString(e.Host + ": ")
	}
	b.WriteString("no response after " + strconv.Itoa(e.Attempts) + " attempt")
	if e.Attempts != 1 {
		b.WriteByte('s')
	}
	e.list(&b)
	switch {
	case e.Reason != Blocked:
		b.WriteString(": " + e.Reason.String())
	case e.refusal != nil:
		b.WriteString(": not repeated: " + plain.Text(e.refusal))
	default: // it was made, and its refusal is the last of the list
		b.WriteString(": not repeated")
	}
	if e.Err != nil && !e.told() {
		b.WriteString(": " + plain.Text(e.Err))
	}
	return b.String()
}

// list writes how the attempts ended, in brackets, and what came several times
// in a row once.
func (e *Error) list(b *strings.Builder) {
	between := " ("
	for i := 0; i < len(e.Tried); {
		text, n := e.Tried[i].text(), 1
		for i+n < len(e.Tried) && e.Tried[i+n].text() == text {
			n++
		}
		b.WriteString(between + text)
		if n > 1 {
			b.WriteString(", " + strconv.Itoa(n) + " times")
		}
		between, i = "; ", i+n
	}
	if len(e.Tried) > 0 {
		b.WriteByte(')')
	}
}

func (t Tried) text() string {
	if t.Err == nil {
		return strconv.Itoa(t.Status)
	}
	return plain.Text(t.Err)
}

// told reports whether the last attempt says what Err says. Their texts are
// compared because errors need not be comparable.
func (e *Error) told() bool {
	n := len(e.Tried)
	return n > 0 && e.Tried[n-1].text() == plain.Text(e.Err)
}

// Unwrap returns the last attempt's error and, if the caller's context ended
// the request, that context's and its cause; if there was no time left before the
// caller's deadline, context.DeadlineExceeded.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 3)
	for _, err := range [...]error{e.Err, e.ended, e.cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Timeout reports that time ran out: the attempt's, or the caller's.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.ended, context.DeadlineExceeded) || errors.As(e.Err, &t) && t.Timeout()
}

// Temporary reports that a later request may fare better.
func (e *Error) Temporary() bool { return e.Timeout() }

// TimeoutError ends an attempt that took longer than AttemptTimeout, and the Read
// of a body that was blocked for StallTimeout.
type TimeoutError struct {
	Host  string
	Limit time.Duration
	Body  bool // the body stalled

	at trip.Stage // otherwise
}

// Error names the host, the limit, and what did not come within it.
func (e *TimeoutError) Error() string {
	host := e.Host
	if host != "" {
		host += ": "
	}
	what := "no response headers within"
	switch {
	case e.Body:
		what = "response body stalled for"
	case e.at == trip.Dialling:
		what = "no connection within"
	case e.at == trip.Sending:
		what = "request body stalled for"
	}
	return fmt.Sprintf("retry: %s%s %v", host, what, e.Limit)
}

// Timeout is true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary is true.
func (e *TimeoutError) Temporary() bool { return true }
