package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Config says how a store is used. The caller of New has checked its fields.
type Config struct {
	Members  int           // processes at most; needed by Share
	WhenDown WhenDown      // what happens to requests while the store is gone
	Deadline time.Duration // for how long requests wait for a call; zero: 50 ms
	Spread   time.Duration // by how much the times from grant to arrival at the server may differ; zero: 50 ms or 5 % of the window, whichever is shorter
	Lease    time.Duration // for how long room that was booked ahead may be kept; zero: none is booked ahead
	// OnState is called without a lock when the state of the store changes, on a
	// goroutine for which Close waits. nil: not called.
	OnState func(from, to State, why error)
}

// WhenDown is what happens to requests while the store cannot be asked.
type WhenDown uint8

const (
	Share  WhenDown = iota // go on with 1/Members of every rate
	Refuse                 // refuse them
	Pass                   // let them pass
)

// State is how a store last answered.
type State uint8

const (
	Up   State = iota // it answers
	Busy              // it answers that it cannot serve: store.ErrBusy
	Gone              // several calls failed; one call is tried from time to time
)

// A Key is something shared that a request draws on. The same ID always has
// the same Rates, until a budget is changed.
type Key struct {
	ID    string       // the same in every process
	Name  string       // for refusals; no secrets
	Rates []meter.Spec // all of them must have room
	// InFlight is how many requests may be under way at a time, from the booking
	// until Done of its Grant; zero: any number.
	InFlight int
	Window   *Window  // a learned limit instead of InFlight; nil: none
	Tallies  []*Tally // of limits that nobody configured
	AtOnce   bool     // requests are booked only if they may be sent at once
}

// Options are settings of one booking.
type Options struct {
	Priority int           // higher goes first, equal ones in the order of their arrival
	MaxWait  time.Duration // the longest wait; the context's deadline counts, too. Negative: no wait
	Now      time.Time     // when MaxWait begins, if the caller has just read the clock; zero: Book reads it
	// Held says that Answered or Cancel of the Grant will be called when the answer has
	// come. Otherwise units count from the grant.
	Held bool
	// Heard is called, under no lock, each time that the store lets the request wait, but for places
	// in flight, so that what its tallies said can be taken in before the wait is over. It may be nil.
	Heard func()
}

// Reason is why a booking was refused.
type Reason uint8

const (
	TooLong   Reason = iota + 1 // the wait exceeds MaxWait or the deadline
	Paused                      // the wait for a pause, or for a quota that the server stated, exceeds them
	NeverFits                   // the cost exceeds a limit
	Down                        // the store cannot be asked, and WhenDown says Refuse
	Ended                       // Close was called
	Spent                       // nothing is left of the limit of a Tally, as far as this process knows
)

// A Refusal says why nothing was booked.
type Refusal struct {
	Err      error         // the cause of the context, if that ended the wait; then the other fields are zero
	Name     string        // of the key that is the reason
	Unit     string        // the unit of its limit; "": a pause is the reason
	Reason   Reason        // zero if Err is set
	Wait     time.Duration // the wait that would have been needed; zero: not known
	Bound    time.Duration // for how long the request could still wait
	ByCaller bool          // Bound is from the context's deadline, not from MaxWait
}

// bound is how many requests that draw on k may be under way at a time; zero: any number.
func (k Key) bound() int64 {
	if k.Window == nil {
		return int64(k.InFlight)
	}
	n, _ := k.Window.limit()
	return n
}
