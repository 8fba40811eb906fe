package trip

import (
	"fmt"
	"time"
)

// As a context, a trip is the caller's with itself in it: see Over.

// Value implements context.Context.
func (t *Trip) Value(k any) any {
	if k == (key{}) {
		return t
	}
	return t.Caller.Value(k)
}

// Deadline implements context.Context.
func (t *Trip) Deadline() (time.Time, bool) { return t.Caller.Deadline() }

// Done implements context.Context.
func (t *Trip) Done() <-chan struct{} { return t.Caller.Done() }

// Err implements context.Context.
func (t *Trip) Err() error { return t.Caller.Err() }

// String names the context, as package context does when a context is printed. It does
// not print the trip, whose request may have credentials.
func (t *Trip) String() string { return fmt.Sprint(t.Caller) + ".WithTrip" }

// String names the context, as Trip.String does.
func (c *carrier) String() string { return fmt.Sprint(c.Context) + ".WithTrip" }
