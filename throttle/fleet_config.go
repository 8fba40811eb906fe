package throttle

import (
	"fmt"
	"time"

	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/store"
)

// A Store keeps the budgets that several processes share. Package store has the
// rules of a Store, and one in memory for tests. The modules redisstore and
// filestore have one on Redis and one in files.
type Store = store.Store

// ErrStoreBusy is wrapped by errors of a Store that answers but cannot serve.
// Everything else counts as a store that is gone.
var ErrStoreBusy = store.ErrBusy

// FleetConfig says how a [Store] is used. Members must be set, unless WhenDown is
// FailClosed or FailOpen.
//
// Every request asks the Store, also if its host has no budget, because another
// process may have been told to pause. A wait for room in the Store may exceed
// MaxWait by two Deadlines, but never the request's own deadline. OnWait is not
// called for it. While requests wait for a limit that nobody configured or stated,
// a process asks the Store what the others sent: ten times a second at most, and
// less often with more Members.
type FleetConfig struct {
	// Members is the largest number of processes that share the Store. While the
	// Store is gone, each process continues with that fraction of every limit,
	// whether it was configured, stated by the server or found. When a server
	// states a new window, each takes that fraction first. Only WhenDown
	// ShareRates needs Members and uses it.
	Members int

	// WhenDown says what happens to requests while the Store is slow, busy or
	// gone; zero: ShareRates.
	WhenDown WhenDown

	// Deadline is how long requests wait for one call to the Store; zero: 50 ms.
	// Together with calls of others that they wait for, that is an eighth longer at
	// most. Then they continue as WhenDown says; what a later answer charged is given
	// back. If more than one answer in ten comes later, the Store counts as gone.
	// The call itself may take a second, so that there is time to make a new
	// connection. Deadline should be some ten round trips.
	Deadline time.Duration

	// Spread is by how much the time from grant to arrival at the server differs
	// between requests. Windows are kept longer by this. In windows of up to 64
	// units, and in those of which more than half may be sent at once, a unit
	// whose answer comes later counts from the answer, so the promise of a Rate
	// holds at the server whatever the Spread is. In other windows, units that
	// arrive later than this can be too many. Zero: 50 ms or 5 % of the window,
	// whichever is shorter.
	Spread time.Duration

	// Lease is how long this process may keep units that it has booked ahead.
	// Requests that come one by one then need no call to the Store. Windows are
	// kept longer by this, so the promise of a Rate holds; a Bucket lets
	// Limit*Lease/Per more through in any window. Units that are left are given
	// back when the lease ends and on Close. A lease costs some of the rate: a
	// window of Per gives Per/(Per+Spread+Lease) of what its Burst leaves. Of
	// 100/s that is 91 a second without a lease, 83 with one of 100 ms and 49 with
	// one of 1 s. A lease of a hundredth of the window costs a hundredth. Zero:
	// none.
	Lease time.Duration

	// OnStore is called when the state of the Store changes, on a goroutine of
	// the throttle's or of a request that waits, never under a lock. It must not call Close, which waits
	// for it. nil: not called.
	OnStore func(StoreChange)
}

// WhenDown is what to do while a Store cannot be asked.
type WhenDown uint8

const (
	// ShareRates goes on in this process alone with 1/Members of every rate,
	// beginning with none to spend. The fleet together then stays within its
	// rates, plus one request a process, and a Burst or Bucket more where an
	// outage begins or ends.
	ShareRates WhenDown = iota
	// FailClosed refuses with [StoreDown].
	FailClosed
	// FailOpen lets everything through that this process's own budgets allow.
	FailOpen
)

// StoreState is how a Store last answered.
type StoreState uint8

const (
	StoreUp   StoreState = iota // it answers
	StoreBusy                   // it answers that it cannot serve; see ErrStoreBusy
	StoreGone                   // several calls in a row failed; one call in a while is tried
)

// String returns the state in lower case.
func (s StoreState) String() string {
	return [...]string{"up", "busy", "gone"}[min(s, StoreGone)]
}

// StoreChange is a change of a Store's state, as OnStore sees it.
type StoreChange struct {
	From, To StoreState
	Err      error // why; nil when To is StoreUp
}

// new returns what asks s as c says, or an error that names the field and the
// value.
func (c FleetConfig) new(s Store) (*fleet.Fleet, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	f := fleet.Config{Members: c.Members, WhenDown: fleet.WhenDown(c.WhenDown), Deadline: c.Deadline, Spread: c.Spread, Lease: c.Lease}
	if c.OnStore != nil {
		f.OnState = func(from, to fleet.State, why error) {
			c.OnStore(StoreChange{From: StoreState(from), To: StoreState(to), Err: why})
		}
	}
	return fleet.New(s, f), nil
}

func (c FleetConfig) check() error {
	switch {
	case c.Members < 0:
		return fmt.Errorf("throttle: Fleet.Members: %d is negative", c.Members)
	case c.WhenDown > FailOpen:
		return fmt.Errorf("throttle: Fleet.WhenDown: %d is unknown", c.WhenDown)
	case c.Members == 0 && c.WhenDown == ShareRates:
		return fmt.Errorf("throttle: Fleet.Members: 0: set it to the largest number of processes that share the Store, so that each can continue with its share of the rates while the Store is gone (or set Fleet.WhenDown to FailClosed or FailOpen)")
	case c.Deadline < 0:
		return fmt.Errorf("throttle: Fleet.Deadline: %v is negative", c.Deadline)
	case c.Spread < 0:
		return fmt.Errorf("throttle: Fleet.Spread: %v is negative", c.Spread)
	case c.Spread > store.MaxHorizon:
		return fmt.Errorf("throttle: Fleet.Spread: %v is longer than any window a Store keeps, which is %v", c.Spread, store.MaxHorizon)
	case c.Lease < 0 || c.Lease > time.Minute:
		return fmt.Errorf("throttle: Fleet.Lease: %v is not between 0 and 1 min", c.Lease)
	}
	return nil
}

// storable returns an error if a Store cannot keep b's rates.
func storable(field string, b Budget, f *fleet.Fleet) error {
	k, c := fleet.Key{Rates: newPlan("", "", b).specs, InFlight: b.InFlight}, f.Config()
	err := fleet.Storable(k, c)
	if err == nil {
		return nil
	}
	brief := c
	brief.Spread = 0
	if c.Spread > 0 && fleet.Storable(k, brief) == nil { // windows are kept longer by it
		return fmt.Errorf("throttle: Fleet.Spread: %v is too long for %s: %v: %w", c.Spread, field, b, err)
	}
	return fmt.Errorf("throttle: %s: a Store cannot keep %v: %w", field, b, err)
}

// storableAll is storable of a whole configuration.
func storableAll(other Budget, by map[string]Budget, f *fleet.Fleet) error {
	if err := storable("Default", other, f); err != nil {
		return err
	}
	for name, b := range by {
		if err := storable(fmt.Sprintf("Budgets[%s]", pattern.Quote(name)), b, f); err != nil {
			return err
		}
	}
	return nil
}

// refusedByStore is the error for a booking that was refused.
func refusedByStore(r *fleet.Refusal) error {
	if r.Err != nil {
		return r.Err
	}
	reasons := [...]Reason{
		fleet.TooLong: WaitTooLong, fleet.Paused: Paused, fleet.NeverFits: NeverFits, fleet.Down: StoreDown, fleet.Ended: StoreDown,
		fleet.Spent: WaitTooLong, // of a limit that the server states: the caller waits for it itself
	}
	e := &Error{Key: r.Name, Unit: r.Unit, RetryAfter: r.Wait, Reason: reasons[r.Reason], bound: r.Bound, deadline: r.ByCaller}
	if r.Reason == fleet.Ended {
		e.detail = "after Close"
	}
	return e
}
