package store

import (
	"math"
	"time"
)

// A Ledger is the state of one key of a [Store], and its methods are the
// specification of what a Store does: pure functions of state, operation and
// time. The stores in memory and on files run them under a lock; the script of
// redisstore is tested against them. The zero Ledger is a key at rest; so is
// any ledger once [Ledger.Idle] says so.
//
// Instants are microseconds since 1970 by the store's clock. When that clock
// steps back, what is dated keeps its distance: nobody stalls and nothing is
// minted. So it does when the clock steps ahead, if the first to book then is somebody who
// can tell ([Seen.Clock]). Else a window ends that much early, and a meter has drained that
// much, at most its Size.
//
// A server that is restarted from a dump, or takes another's place, has a state
// that is older than what it granted. Such a state, and one that somebody
// remembers and the server does not, is not charged for [Ahead]: meanwhile
// those who remember more say so, whoever comes first. Of a key that was lost, or idle in the
// dump, a server knows no more than of a new one. Newcomers are served of it until somebody
// comes who remembers a unit more; then nothing is charged for [Ahead].
type Ledger struct {
	// Era names the run of the server that keeps l now, below 2^12, and is not
	// kept with it: a store sets it before it calls a method or Book. It differs
	// after a restart and on another server. Zero: the store cannot tell, and
	// what is older is only noticed when somebody comes who remembers more.
	Era      int64          `json:"-"`
	Gen      int64          `json:"gen"`             // names this state, see newGen
	At       int64          `json:"at"`              // when it was last written
	Pause    int64          `json:"pause,omitempty"` // nothing starts before
	Guess    int64          `json:"guess,omitempty"` // nor before this, which somebody guessed
	Heals    int64          `json:"heals,omitempty"` // nothing is charged before, see above
	Expires  int64          `json:"expires"`         // idle from then on
	Accounts []Account      `json:"accounts,omitempty"`
	Stated   []LedgerStated `json:"stated,omitempty"`
}

// An Account is the state of one limit. Bookings need not draw on all limits of
// a key: processes with older settings have others.
type Account struct {
	Kind    LimitKind `json:"kind"`
	ID      string    `json:"id"`
	Idle    int64     `json:"idle,omitempty"`    // as good as new from then on
	At      int64     `json:"at,omitempty"`      // Meter: as of when Level stands
	Level   float64   `json:"level,omitempty"`   // Meter: units in use; Calendar: used in the window that ends at Ends
	Ends    int64     `json:"ends,omitempty"`    // Calendar
	Entries []Entry   `json:"entries,omitempty"` // Log, oldest first
}

// An Entry is units that start at one instant.
type Entry struct {
	At    int64   `json:"at"`
	Units float64 `json:"units"`
}

// LedgerStated is a quota the server stated.
type LedgerStated struct {
	ID        string  `json:"id"`
	Unit      string  `json:"unit"`
	Remaining float64 `json:"remaining"`
	Ends      int64   `json:"ends"`
}

// paused is until when nothing starts, by Pause or Guess.
func (l *Ledger) paused() int64 { return max(l.Pause, l.Guess) }

// Idle reports whether l is as good as the zero Ledger.
func (l Ledger) Idle(now time.Time) bool { return l.Expires <= now.UnixMicro() }

// Book evaluates b against ls, the ledgers of its draws in their order.
// It returns the ledgers to be written, or nil when nothing changes, and leaves
// ls alone. One that is zero need not be kept. b must be valid.
func Book(now time.Time, ls []Ledger, b Booking) ([]Ledger, Booked) {
	vs := make([]ledgerView, len(ls))
	for i := range ls {
		vs[i] = ls[i].view(now.UnixMicro(), b.Draws[i])
	}
	r := Booked{Draw: -1, Limit: -1}
	switch {
	case b.Force:
		r.Outcome = BookedOne
	case batchFits(vs):
		r.Outcome = BookedAll
	default:
		r = firstFits(vs, b.MaxWait)
	}
	r.Ready = now.UnixMicro() + r.Wait.Microseconds()
	// A refusal writes what a step of the clock changed: what is dated would
	// stand still until the clock is there again, or somebody would come who does not
	// know of the step. And it writes what only the
	// caller remembers: others would spend it again, and the caller, who
	// remembers it as of each reply, would never see it end.
	write := r.Outcome == BookedOne || r.Outcome == BookedAll
	for i := range vs {
		write = write || r.Outcome == Refused && (vs[i].back != 0 || (vs[i].merged || vs[i].fresh) && !vs[i].empty())
	}
	var next []Ledger
	for i := range vs {
		if write {
			next = append(next, vs[i].charge(r.Ready, r.Outcome))
		}
		r.Keys = append(r.Keys, vs[i].standing())
	}
	return next, r
}

func batchFits(vs []ledgerView) bool {
	for i := range vs {
		if !vs[i].fitsAll() {
			return false
		}
	}
	return true
}

func firstFits(vs []ledgerView, maxWait time.Duration) Booked {
	r := Booked{Draw: -1, Limit: -1}
	var wait int64
	for i := range vs {
		w, limit := vs[i].wait()
		if w < 0 {
			return Booked{Outcome: Impossible, Draw: i, Limit: limit}
		}
		if w > wait {
			wait, r.Draw, r.Limit = w, i, limit
		}
	}
	r.Outcome = BookedOne
	if wait > maxWait.Microseconds() || len(vs) > 1 && wait > 0 {
		r.Outcome = Refused
	}
	for i := range vs {
		if w := vs[i].heals(); w > 0 {
			r.Outcome = Refused
			if w > wait {
				wait, r.Draw, r.Limit = w, i, -1
			}
		}
		if w := vs[i].straddles(wait); w > 0 {
			wait, r.Outcome = max(wait, w), Refused
		}
	}
	r.Wait = time.Duration(wait) * time.Microsecond
	return r
}

// AfterRefund returns l with what r gives back taken off.
func (l Ledger) AfterRefund(now time.Time, r Refund) Ledger {
	if l.Gen != r.Gen || l.Gen == 0 || l.restored() || l.Idle(now) {
		return l
	}
	l.Accounts = append([]Account(nil), l.Accounts...)
	for i, p := range r.Limits {
		a := l.account(p)
		units := r.Units[i]
		if a == nil || !(units > 0) {
			continue
		}
		switch p.Kind {
		case MeterLimit:
			drained := a.Level - float64(p.perMicro()*float64(max(0, now.UnixMicro()-a.At)))
			// What will have drained when the last one starts that is booked
			// ahead is in nobody's way then: to take it off would let another
			// start together with that one.
			ahead := max(0, drained-p.Size)
			held := r.Held[i] - float64(p.perMicro()*float64(max(0, now.UnixMicro()-r.At))) - ahead
			a.Level -= min(units, max(0, min(drained, held)))
		case CalendarLimit:
			if r.Ready < a.Ends && r.Ready >= a.Ends-p.Per.Microseconds() {
				a.Level = max(0, a.Level-units)
			}
		case LogLimit:
			a.Entries = withoutUnits(a.Entries, p, r.Ready, units)
		}
	}
	return l
}

// Level is how many units of p are in use at now; a Meter's may be negative,
// see Limit.Credit.
func (l Ledger) Level(now time.Time, p Limit) float64 {
	v := l.view(now.UnixMicro(), Draw{Limits: []Limit{p}})
	return v.level(0)
}

func (l *Ledger) account(p Limit) *Account {
	for i := range l.Accounts {
		if a := &l.Accounts[i]; a.Kind == p.Kind && a.ID == p.ID {
			return a
		}
	}
	return nil
}

const (
	microSecond = int64(time.Second / time.Microsecond)
	// expiryStep is what a charge rounds Expires up to a multiple of: where a key is
	// charged often, its expiry need not be told to a database each time. A quarter of a
	// second makes that four times a second at most, and keeps no key noticeably longer.
	expiryStep = microSecond / 4
	// pauseEcho is how long after a pause's end its shaping may matter, when nobody
	// booked in between to write it down. By then the burst is there again of a rate that
	// fills within a minute; that of a slower one may go too early.
	pauseEcho = 60 * microSecond
)

// eraShift leaves an era 12 bits of the 31 that Redis keeps in four bytes, and
// the name of a state 19.
const eraShift = 19

// newGen names a state that begins at now: short, as stores keep it with every
// key, never 0, and different from that of another state of the same key but
// for one chance in half a million. It says which Era wrote it.
func newGen(now, era int64) int64 { return era<<eraShift | max(1, now&(1<<eraShift-1)) }

// restored reports whether another run of the server wrote l.
func (l Ledger) restored() bool { return l.Gen != 0 && l.Gen>>eraShift != l.Era }

func ceilMicro(d time.Duration) int64 {
	return int64((min(max(d, 0), MaxHorizon) + time.Microsecond - 1) / time.Microsecond)
}

func (p Limit) perMicro() float64 { return p.Rate / 1e6 }

// Tolerance is how far a level may be above the Size: a caller that waited
// exactly as told is not refused for the last bit of a double.
func (p Limit) Tolerance() float64 { return 1e-9 + p.Size*1e-12 }

func ceilWait(units, perMicro float64) int64 {
	return int64(math.Ceil(min(units/perMicro, float64(MaxHorizon/time.Microsecond))))
}
