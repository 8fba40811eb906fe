package breaker

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// State is what a circuit does with requests. The zero State is Closed.
type State uint8

const (
	Closed   State = iota // requests pass and are judged
	HalfOpen              // one request at a time passes, as a probe
	Open                  // none passes until the open period ends
)

// String returns the state in lower case, as "half-open".
func (s State) String() string {
	names := [...]string{"closed", "half-open", "open"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// MarshalText makes a State readable in JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(text []byte) error {
	for _, known := range []State{Closed, HalfOpen, Open} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("breaker: %q is not a state of a circuit", text)
}

// Error is the refusal of a request because its host's circuit is not closed. The
// attempt that was refused was not sent; an earlier one of the same request may
// have been. By errors.Is it is context.DeadlineExceeded if the wait for the
// circuit, which Patience allows, exceeds the deadline. If the request's context
// ended during the wait, it is that context's error.
type Error struct {
	Host       string        // canonical
	Shard      string        // eight hex digits; "" without Config.Shard
	State      State         // Open or HalfOpen
	RetryAfter time.Duration // until the open period ends; zero: not known (forced open, or a probe is under way)

	by
	cause error // why a wait for the circuit ended; nil: there was none
	ctx   error // the context's own word, if cause is another
}

func (e *Error) Error() string {
	where := e.Host
	if e.Shard != "" {
		where += " shard " + e.Shard
	}
	text := fmt.Sprintf("breaker: %s: circuit is %v", where, e.State)
	if wait := e.RetryAfter.Round(time.Millisecond); wait > 0 {
		text += fmt.Sprintf(", for another %v", wait)
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Timeout reports whether the request waited for the circuit, or would have
// had to wait, longer than its deadline allowed.
func (e *Error) Timeout() bool { return e.Is(context.DeadlineExceeded) }

// Is reports whether target is what the request's context said.
func (e *Error) Is(target error) bool { return e.ctx != nil && target == e.ctx }

// Unwrap returns why a wait for the circuit ended, or nil.
func (e *Error) Unwrap() error { return e.cause }

// by tells the layers above who refused; an alias, so that the method which it
// lends is no part of the documented API.
type by = notsent.By

func refuser(l trip.Layer) notsent.By {
	if l == trip.Door {
		return notsent.Door
	}
	return notsent.Meter
}
