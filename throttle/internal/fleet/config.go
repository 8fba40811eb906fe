package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Config says how a store is used. Its fields are checked by who makes it.
type Config struct {
	Members  int // processes at most; needed by Share
	WhenDown WhenDown
	Deadline time.Duration // of a call; zero: 50 ms
	Spread   time.Duration // from grant to arrival at the server, between requests; zero: 50 ms or 5 % of the window, whichever is shorter
	Lease    time.Duration // how long room that was booked ahead may be kept; zero: none is
	// OnState is called when the store's state changes, on a goroutine that
	// Close waits for, under no lock. nil: not called.
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
	Gone              // several calls in a row failed; one call in a while is tried
)

// A Key is something shared that a request draws on. The same ID always has
// the same Rates, until a budget is changed.
type Key struct {
	ID    string // the same in every process
	Name  string // for refusals; no secrets
	Rates []meter.Spec
	// InFlight is how many requests may be under way at a time, from the booking
	// until Done of its Grant; zero: any number.
	InFlight int
	Window   *Window  // InFlight that is learned; nil: none is
	Tallies  []*Tally // of limits that nobody configured
	AtOnce   bool     // nothing is booked ahead: what is counted is sent
}

// Options are those of one booking.
type Options struct {
	Priority int           // higher goes first, equal ones in their order
	MaxWait  time.Duration // never beyond the context's deadline; negative: not at all
	// Held says that an answer will come: Answered or Cancel of the Grant is
	// called then. Otherwise units count from the grant.
	Held bool
}

// Reason is why a booking was refused.
type Reason uint8

const (
	TooLong   Reason = iota + 1 // the wait exceeds MaxWait or the deadline
	Paused                      // so does a pause or a quota that the server stated
	NeverFits                   // the cost exceeds a limit
	Down                        // the store cannot be asked, and WhenDown says Refuse
	Ended                       // Close was called
	Spent                       // nothing is left of a Tally, as far as this process knows
)

// A Refusal says why nothing was booked.
type Refusal struct {
	Err      error  // the context ended the wait, and this is its cause; the other fields say nothing then
	Name     string // of the key that binds
	Unit     string // of its limit; "" for a pause
	Reason   Reason
	Wait     time.Duration // that would have been needed; zero if that is not known
	Bound    time.Duration // what was left to wait
	ByCaller bool          // Bound is the context's
}

// bound is how many requests that draw on k may be under way at a time; zero: any number.
func (k Key) bound() int64 {
	if k.Window == nil {
		return int64(k.InFlight)
	}
	n, _ := k.Window.limit()
	return n
}
