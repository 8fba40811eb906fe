package retry

import (
	"context"
	"net/http"
	"time"
)

// Attempt is what OnAttempt is told: how one attempt ended and what follows.
type Attempt struct {
	Ctx      context.Context // the caller's
	Host     string
	Method   string // of the request; "" is GET
	Number   int    // of the request's attempts, from 1
	Hedged   bool   // a hedge was sent beside it
	HedgeWon bool   // and it is the hedge's outcome that is told
	Outcome  Outcome
	Status   int            // zero: no response
	Err      error          // nil: there was a response
	Response *http.Response // its body is the caller's, or is closed before the next attempt; nil: there was none
	Reason   Reason
	Delay    time.Duration // before the next attempt, if Reason is Again
	DelayBy  DelayBy       // why Delay is as long as it is
	Waited   time.Duration // what the request has waited for budget so far
	Took     time.Duration // from the wire to the headers of the answer, or to what came instead; zero: it did not reach the wire
}

// Reason is why another attempt follows, or why none does.
type Reason uint8

const (
	Final       Reason = iota // the policy does not retry such an outcome
	Again                     // another attempt follows after the delay
	Queued                    // another follows at once and waits in the throttle's queue; it costs neither an attempt nor allowance
	Unsafe                    // the server may have processed it, and it is not idempotent
	Exhausted                 // no attempts left
	NoAllowance               // the host's allowance is spent
	BodyGone                  // the request body cannot be sent again
	TooLong                   // the server asks for more than MaxDelay
	NoTime                    // the next attempt would start after the caller's deadline
	Vetoed                    // the server said not to retry
	Declined                  // Check, Backoff or Delay said no
	Blocked                   // the throttle or breaker below would refuse it, or did
	Ended                     // the caller's context ended
	reasons
)

// String returns the reason in words, as "no attempts left".
func (r Reason) String() string {
	names := [reasons]string{
		"not retried", "retried", "queued again", "not safe to repeat", "no attempts left",
		"no allowance left", "body cannot be sent again", "the server's delay is too long",
		"no time left", "the server forbids it", "declined by policy", "refused below", "cancelled",
	}
	if r < reasons {
		return names[r]
	}
	return "invalid"
}

// DelayBy is what decides how long a delay is.
type DelayBy uint8

const (
	Nothing DelayBy = iota
	Backoff         // the delay policy
	Server          // the server's Retry-After
	Queue           // the layers below: budget or a circuit
)

// String returns "nothing", "backoff", "server" or "queue".
func (d DelayBy) String() string {
	names := [...]string{"nothing", "backoff", "server", "queue"}
	if int(d) < len(names) {
		return names[d]
	}
	return "invalid"
}
