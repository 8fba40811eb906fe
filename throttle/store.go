package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// A Store keeps the accounts that several processes share. The processes of a
// fleet that use one API key are given the same Store (same server, same
// prefix); everything they may send together is decided in it.
//
// [NewMemoryStore] is a Store for one process, for tests. The modules
// redisstore and filestore hold those for many. Package storetest holds the
// conformance suite that every Store must pass; the rules of a single
// operation are those of [Ledger], which a Store that can lock a key may use
// as it is.
//
// A Store is safe for concurrent use. Operations on one key are linearizable.
// All durations in requests and replies are relative: the only clock that
// decides is the store's own.
type Store interface {
	// Book charges b to every key it names, or to none. The reply says
	// whether the caller may start, now or after a wait, or how long it would
	// have to wait. A refusal leaves no trace.
	//
	// An error means that nothing is known: the charge may or may not have
	// been made, and a caller must not send on it. Book is never repeated by
	// the store on its own. An error that wraps [ErrStoreBusy] comes from a
	// store that is alive.
	Book(ctx context.Context, b Booking) (Booked, error)

	// Refund gives units of an earlier booking back. It is sent at most once,
	// never after an error, because a repeated refund would mint units. It
	// changes nothing when the key has lost its state since the booking.
	Refund(ctx context.Context, r Refund) error

	// Tell lets every process know what one of them heard from the server.
	Tell(ctx context.Context, key string, n News) error
}

// ErrStoreBusy is wrapped by errors of a Store that answers but cannot serve:
// out of memory, loading, running a long script, all connections in use.
// Everything else that is no validation error counts as a store that is gone.
var ErrStoreBusy = errors.New("store is busy")

// LimitKind says how a [StoreLimit] counts. The zero value is no kind.
type LimitKind uint8

const (
	// MeterLimit holds a level that drains at Rate: at most Size + Rate·W units
	// in any window W.
	MeterLimit LimitKind = iota + 1
	// LogLimit remembers when units went: at most Size in any window of length Per.
	LogLimit
	// CalendarLimit counts from boundary to boundary: at most Size in each window
	// that ends at Ends, and in those that follow it.
	CalendarLimit
)

// A StoreLimit is one rate in the form in which stores keep it. It travels with
// every booking, so that processes with old and new settings share one level.
type StoreLimit struct {
	ID   string // names the limit within its key, at most 64 bytes
	Kind LimitKind
	Unit int     // index into Draw.Units
	Size float64 // Meter: units that fit at once; Log, Calendar: units per window

	Rate float64 // Meter: units per second
	// Credit is what a single cost may exceed Size by, at a Meter: such a cost
	// goes when the meter has been empty for as long as its excess takes to
	// drain. Negative: any cost goes when the meter is empty, and those after
	// it pay it off. Zero: a cost above Size never fits.
	Credit float64

	Per   time.Duration // Log, Calendar: length of the window
	Grain time.Duration // Log: units this close together are kept as one entry, dated by the last; zero: exact.
	// At least Per/128 if Size is above 128, which bounds the state

	Ends time.Time // Calendar: a boundary; the store's clock decides on which side it stands
}

// A UnitCost is what a booking draws of one unit.
type UnitCost struct {
	Unit  string
	First int64 // cost of the first request of the batch
	All   int64 // cost of all of them, at least First
}

// A Draw is what a booking draws from one key.
type Draw struct {
	Key    string
	Limits []StoreLimit // at most 16
	Units  []UnitCost   // at most 16
	Seen   Seen
}

// Seen is what this process was last told about a key and how long ago, by its
// own monotonic clock, counted from before it asked. A store that has lost or
// rolled back the key's state puts it back from this; otherwise it is ignored.
// The zero Seen says that nothing is known.
type Seen struct {
	Standing
	Age time.Duration
}

// A Standing is the state of a key after an operation.
type Standing struct {
	Gen    int64         // when the key's state began, in microseconds of the store's clock; 0: it has none
	At     int64         // when it was last written, likewise
	Paused time.Duration // how much longer nothing may start
	Levels []float64     // per limit of the Draw: units in use; a Meter's may be negative, see StoreLimit.Credit
}

// A Booking asks for room for a batch of requests, on all keys or on none.
//
// If everything fits at once, the whole batch is charged. Otherwise the first
// request alone is, if it can start within MaxWait: while a key is short every
// process books one request at a time, which shares it out evenly. With more
// than one key nothing is booked ahead: a wait on one key must not hold up
// others' requests on another.
type Booking struct {
	Draws   []Draw        // 1 to 16, keys differ
	MaxWait time.Duration // how far ahead the first request may be booked
	// Force charges Units[i].First whatever the level, pauses included, and
	// never waits: to settle what a request cost more than was booked.
	Force bool
}

// Outcome says what a Book came to. The zero value is Refused.
type Outcome int

const (
	Refused    Outcome = iota // nothing was charged; Wait says when the first request could start
	BookedOne                 // the first request was charged and may start after Wait
	BookedAll                 // the whole batch was charged and may start now
	NeverFits1                // nothing was charged: the first cost is above what a limit ever holds
)

// Booked is the reply to a Booking.
type Booked struct {
	Outcome Outcome
	Wait    time.Duration // rounded up to a microsecond
	Ready   int64         // when it may start, in microseconds of the store's clock
	Keys    []Standing    // per Draw, after the charge
	// Draw and Limit say what the wait is for: indexes into Draws and its
	// Limits. Limit is -1 for a pause or a limit the server stated; Draw is -1
	// if there is no wait.
	Draw, Limit int
}

// A Refund gives units of one key's booking back. [Booked.Refund] makes one.
type Refund struct {
	Key    string
	Gen    int64
	Ready  int64
	Limits []StoreLimit
	Units  []float64 // per limit: how many go back, already reduced by what has drained since
}

// News is what a server said that all processes should know. Zero fields say nothing.
type News struct {
	Pause  time.Duration // nothing starts before that has passed; a later end wins; negative: resume
	Stated []Stated
}

// Stated is a quota as the server stated it. It only ever tightens: within one
// window (ends within a second or 5 % of each other) the smaller Remaining
// wins, a window that ends later replaces an older one. It binds every booking
// of the unit until it ends. A key keeps 8, those that end last.
type Stated struct {
	ID        string // at most 64 bytes
	Unit      string
	Remaining int64
	Reset     time.Duration // until the window's end
}

const (
	maxStored  = 16          // draws of a booking, limits and units of a draw
	maxStated  = 8           // stated limits of a key
	maxID      = 64          // bytes
	maxEntries = 128         // of a log, give or take two
	maxAmount  = int64(1e15) // doubles count exactly up to 2^53
	maxHorizon = 400 * 24 * time.Hour
)

// Validate reports the first fault of b, naming the field and the value.
// Stores call it, so that a fault never reaches a script.
func (b Booking) Validate() error {
	if len(b.Draws) == 0 || len(b.Draws) > maxStored {
		return fmt.Errorf("throttle: Booking has %d draws, want 1 to %d", len(b.Draws), maxStored)
	}
	if b.MaxWait < 0 || b.MaxWait > maxHorizon {
		return fmt.Errorf("throttle: Booking.MaxWait %v out of range", b.MaxWait)
	}
	for i, d := range b.Draws {
		for _, e := range b.Draws[:i] {
			if d.Key == e.Key {
				return fmt.Errorf("throttle: Booking names key %q twice", d.Key)
			}
		}
		if err := d.validate(); err != nil {
			return fmt.Errorf("throttle: Booking of key %q: %w", d.Key, err)
		}
	}
	return nil
}

func (d Draw) validate() error {
	if len(d.Limits) > maxStored || len(d.Units) > maxStored {
		return fmt.Errorf("%d limits, %d units, want at most %d", len(d.Limits), len(d.Units), maxStored)
	}
	for _, u := range d.Units {
		if u.First < 0 || u.All < u.First || u.All > maxAmount {
			return fmt.Errorf("unit %q costs %d, %d in all", u.Unit, u.First, u.All)
		}
	}
	for i, l := range d.Limits {
		if err := l.validate(len(d.Units)); err != nil {
			return fmt.Errorf("limit %q: %w", l.ID, err)
		}
		for _, m := range d.Limits[:i] {
			if l.ID == m.ID && l.Kind == m.Kind {
				return fmt.Errorf("limit %q stands twice", l.ID)
			}
		}
	}
	if n := len(d.Seen.Levels); n != 0 && n != len(d.Limits) {
		return fmt.Errorf("Seen has %d levels for %d limits", n, len(d.Limits))
	}
	return nil
}

func (l StoreLimit) validate(units int) error {
	switch {
	case len(l.ID) > maxID:
		return fmt.Errorf("ID of %d bytes, want at most %d", len(l.ID), maxID)
	case l.Unit < 0 || l.Unit >= units:
		return fmt.Errorf("unit %d of %d", l.Unit, units)
	case !(l.Size > 0) || l.Size > float64(maxAmount):
		return fmt.Errorf("size %v", l.Size)
	case l.Kind == MeterLimit && (!(l.Rate > 0) || math.IsInf(l.Rate, 0) || math.IsNaN(l.Credit) || math.IsInf(l.Credit, 0)):
		return fmt.Errorf("rate %v, credit %v", l.Rate, l.Credit)
	case l.Kind != MeterLimit && (l.Per <= 0 || l.Per > maxHorizon):
		return fmt.Errorf("window of %v", l.Per)
	case l.Kind == LogLimit && (l.Grain < 0 || l.Size > maxEntries && l.Grain < l.Per/maxEntries):
		return fmt.Errorf("grain %v for %v units in %v", l.Grain, l.Size, l.Per)
	case l.Kind == CalendarLimit && l.Ends.IsZero():
		return errors.New("no end")
	case l.Kind < MeterLimit || l.Kind > CalendarLimit:
		return fmt.Errorf("kind %d", l.Kind)
	}
	return nil
}
