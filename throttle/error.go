package throttle

import (
	"context"
	"strconv"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/words"
)

// Reason is why a request was refused.
type Reason uint8

const (
	WaitTooLong Reason = iota + 1 // the wait exceeds the deadline or MaxWait
	QueueFull                     // MaxQueue requests wait already
	NeverFits                     // the cost exceeds a limit, so no wait helps
	Paused                        // a pause exceeds the deadline or MaxWait
	StoreDown                     // the Store did not answer and its policy is to refuse, or Close was called
)

// String returns the reason in lower case, as "queue full".
func (r Reason) String() string {
	names := [...]string{"unknown", "wait too long", "queue full", "never fits", "paused", "store down"}
	if int(r) < len(names) {
		return names[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Error is a refusal: nothing was sent and nothing was spent for it. It is
// context.DeadlineExceeded (by errors.Is) when the request's deadline is why.
type Error struct {
	Key        string        // the host, or the Limiter's key; a host's partition is shown after a "#" as eight hex digits of an HMAC
	Unit       string        // of the account that bound; "" when it was a pause, the queue or requests in flight
	RetryAfter time.Duration // the wait that would have been needed, as estimated; zero if none helps, or only other requests' ends do
	Reason     Reason

	refusal
	detail   string        // the rate that bound, in words; "" if none
	bound    time.Duration // what the wait exceeds; zero if none
	deadline bool          // bound is the request's own deadline
	group    *queue.Group  // of the account that bound; nil: several groups have it
}

// Error says package, key, what was refused and with which figures.
func (e *Error) Error() string {
	what := ""
	switch e.Reason {
	case WaitTooLong, Paused:
		what = "wait of " + words.Round(e.RetryAfter).String()
		if e.RetryAfter == 0 {
			what = "wait of unknown length"
		}
		if e.Reason == Paused {
			what = "paused: " + what
		}
		switch {
		case e.deadline && e.bound <= 0:
			what += " exceeds the deadline"
		case e.deadline:
			what += " exceeds the " + words.Round(e.bound).String() + " left until the deadline"
		case e.bound > 0 && e.RetryAfter > 0 && e.RetryAfter <= e.bound: // it has waited before
			what += " exceeds the rest of the " + words.Round(e.bound).String() + " limit"
		case e.bound > 0:
			what += " exceeds the " + words.Round(e.bound).String() + " limit"
		default:
			what += "; waiting is not allowed"
		}
	case QueueFull:
		what = "queue is full"
	case NeverFits:
		what = "cost exceeds what the budget can ever have"
	default:
		what = e.Reason.String()
	}
	if e.detail != "" {
		what += " (" + e.detail + ")"
	}
	return "throttle: " + e.Key + ": " + what
}

// refusal tells the layers of weir whose refusal this is; an alias, so that the
// method which it lends is no part of the documented API.
type refusal = notsent.ByThrottle

// Timeout reports whether the request's own deadline is why.
func (e *Error) Timeout() bool { return e.deadline }

// Is makes errors.Is(err, context.DeadlineExceeded) true when the request's own
// deadline is why.
func (e *Error) Is(target error) bool {
	return e.deadline && target == context.DeadlineExceeded
}
