package store

import (
	"context"
	"errors"
	"time"
)

// A Store keeps the accounts that several processes share. The processes of a
// fleet that use one API key are given the same Store (same server, same
// prefix); everything they may send together is decided in it.
//
// Package storetest holds the conformance suite that every Store must pass.
//
// A Store is safe for concurrent use. Operations on one key are linearizable.
// A call ends with its context, at the latest: requests wait for it, and so does
// Close. What a call charges that ended so is lost.
// All durations in requests and replies are relative: the only clock that
// decides is the store's own.
//
// What is shared are rates, pauses, quotas a server states, and counts of what all sent
// and were refused where the server states none. So are places in flight: each is a unit
// of a Log, whose window is how long a process may be silent that has requests under way.
// Lanes, warming up and pacing stay each process's own: its own budgets are asked first,
// and what they grant is then booked in the Store.
type Store interface {
	// Book charges b to every key it names, or to none. The reply says
	// whether the caller may start, now or after a wait, or how long it would
	// have to wait. A refusal charges nothing.
	//
	// An error means that nothing is known: the charge may or may not have
	// been made, and a caller must not send on it. Book is never repeated by
	// the store on its own. An error that wraps [ErrBusy] comes from a
	// store that is alive.
	Book(ctx context.Context, b Booking) (Booked, error)

	// Refund gives units of an earlier booking back. It is sent at most once,
	// never after an error, because a repeated refund would mint units. It
	// changes nothing when the key has lost its state since the booking.
	Refund(ctx context.Context, r Refund) error

	// Tell lets every process know what one of them heard from the server.
	Tell(ctx context.Context, key string, n News) error
}

// ErrBusy is wrapped by errors of a Store that answers but cannot serve:
// out of memory, loading, running a long script, all connections in use.
// Everything else that is no validation error counts as a store that is gone.
var ErrBusy = errors.New("store is busy")

// LimitKind says how a [Limit] counts. The zero value is no kind.
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

// A Limit is one rate in the form in which stores keep it. It travels with
// every booking, so that processes with old and new settings share one level.
type Limit struct {
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
	Limits []Limit    // at most 16
	Units  []UnitCost // at most 16
	Seen   Seen
	Moved  []Moved // at most 16
}

// Moved says that units of an earlier booking are to count from another time
// than they were booked for: they reached the server later, or may yet. The
// booking that carries it is decided with the units moved, and writes that only
// if it is charged. A Log and a Calendar move them; a Meter, which has drained
// them meanwhile, leaves them. Units that are not found where they were, as
// after a loss of state, are charged.
type Moved struct {
	Gen   int64         // of the Standing after the booking
	From  int64         // when they count from so far, in microseconds of the store's clock
	Age   time.Duration // how long ago they are to count from, by the caller's monotonic clock
	Units []int64       // per UnitCost of the Draw
}

// Seen is what this process was last told about a key and how long ago that
// was, by its own monotonic clock. A store that has lost or
// rolled back the key's state puts it back from this; otherwise it is ignored.
// The zero Seen says that nothing is known.
type Seen struct {
	Standing
	Age time.Duration
	// Clock is what the store's clock should read now, in microseconds: what it read in
	// the reply, and the time that has passed since that call was sent. If it reads more
	// than a second more, it has stepped ahead, and no window ends because of that. Zero:
	// unknown.
	Clock int64
}

// mostLate is how much later than Clock a call may come to the store without its clock having
// stepped: longer than networks and busy processors hold up a call, mostly. If a call is held
// up for longer, units count that much longer, which lets nothing through. If it were larger,
// steps would go unnoticed that end a window of some seconds.
const mostLate = time.Second

// stepped is by how much the store's clock has stepped ahead since s.
func (s Seen) stepped(now int64) int64 {
	if ahead := now - s.Clock; s.Gen != 0 && s.Clock != 0 && ahead > mostLate.Microseconds() {
		return ahead
	}
	return 0
}

// Room is how many units the limit at index i of the Draw should hold now; all
// of its Size if nothing is known.
func (s Seen) Room(i int, l Limit) float64 {
	level := 0.0
	if len(s.Levels) > 0 {
		level = max(0, s.Levels[i])
		if l.Kind == MeterLimit {
			level = max(0, level-l.Rate*s.Age.Seconds())
		}
	}
	return l.Size - level
}

// A Standing is the state of a key after an operation.
type Standing struct {
	Gen    int64         // names the key's state since it last began at rest; 0: it has none
	At     int64         // when it was last written, in microseconds of the store's clock
	Paused time.Duration // how much longer nothing may start because of News.Pause
	Levels []float64     // per limit of the Draw: units in use; a Meter's may be negative, see Limit.Credit
}

// Ahead is how far ahead a fleet books at most: whoever waits longer asks
// again, so that a pause or a refund in the meantime counts. A ledger that heals
// a lost state relies on it.
const Ahead = time.Second

// A Booking asks for room for a batch of requests, on all keys or on none.
//
// If everything fits at once, the whole batch is charged. Otherwise the first
// request alone is, if it can start within MaxWait: while a key is short every
// process books one request at a time, which shares it out evenly. With more
// than one key nothing is booked ahead: a wait on one key must not hold up
// others' requests on another.
type Booking struct {
	Draws   []Draw        // 1 to 16, keys differ
	MaxWait time.Duration // how far ahead the first request may be booked; weir asks for [Ahead] at most
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
	Impossible                // nothing was charged: the first cost is above what a limit ever holds
)

// Booked is the reply to a Booking.
type Booked struct {
	Outcome Outcome
	Wait    time.Duration // rounded up to a microsecond
	Ready   int64         // when it may start, in microseconds of the store's clock
	Keys    []Standing    // per Draw, after the charge
	// Draw and Limit say what the wait is for: indexes into Draws and its
	// Limits. Limit is -1 for a pause or a limit the server stated, and ByGuess for
	// News.Guess; Draw is -1 if there is no wait.
	Draw, Limit int
}

// ByGuess is the Booked.Limit of a wait that somebody guessed.
const ByGuess = -2

// A Refund gives units of one key's booking back. [Booked.Refund] makes one.
// However late it comes, a Meter takes back only what of the booking has not
// drained by then, or when the last one starts that is booked ahead: what has,
// others may have booked again.
type Refund struct {
	Key    string
	Gen    int64
	At     int64 // when it was booked, in microseconds of the store's clock
	Ready  int64
	Limits []Limit
	Units  []float64 // per limit: how many go back at most
	Held   []float64 // per limit: a Meter's level at At, less what went back since
}

// News is what a server, or an operator, said that all processes should know. Zero
// fields say nothing.
type News struct {
	Resume bool          // whatever was told before of pauses, guessed ones too, is over; Pause and Guess are told after it
	Pause  time.Duration // nothing starts before that has passed; a later end wins
	Guess  time.Duration // likewise, but a process has only guessed it
	Stated []Stated
	Refill []Refill // at most 16
}

// Refill is units of a limit that an operator gives by hand: as if as many of
// those in use, of a Log the oldest, had not been booked. No more than all of
// them go back. A limit that the key has not is passed over.
type Refill struct {
	Kind  LimitKind
	ID    string
	Units int64
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

// Refund makes the refund of units (as many as b's units, in their order) of
// draw i of b. given holds per limit what earlier refunds of the same booking
// gave back, and is added to; it is nil for a booking that is refunded once.
func (r Booked) Refund(b Booking, i int, units []int64, given []float64) Refund {
	d, k := b.Draws[i], r.Keys[i]
	n := len(d.Limits)
	f := Refund{Key: d.Key, Gen: k.Gen, At: k.At, Ready: r.Start(i), Limits: d.Limits, Units: make([]float64, n), Held: make([]float64, n)}
	for j, l := range d.Limits {
		f.Units[j], f.Held[j] = float64(units[l.Unit]), k.Levels[j]
		if given != nil {
			f.Held[j] -= given[j]
			given[j] += f.Units[j]
		}
	}
	return f
}

// Start is when the units of draw i count from, in microseconds of the clock of
// its key: the keys of one booking may be kept on several servers.
func (r Booked) Start(i int) int64 { return r.Keys[i].At + r.Wait.Microseconds() }
