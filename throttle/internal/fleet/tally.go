package fleet

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Tally counts what all processes draw of a limit that nobody configured, but that
// the server states. The store counts the units booked. From an answer, and from the count
// when its request was booked, each process knows how far the count may go until the limit is
// spent, and the store books no more than that. So if two processes book at the same time and
// only one unit is left, one is refused, although neither knows what the other one heard.
// It is safe for concurrent use.
type Tally struct {
	id, unit string

	mu     sync.Mutex
	known  bool      // the store has said the count
	at     int64     // when the store last changed it, by its clock
	when   time.Time // when that was heard
	count  int64     // units booked since this process knows it
	shift  int64     // how many of these the store does not count any more
	own    int64     // units that this process booked
	most   int64     // how far the count may go
	while  *Tally    // most holds only while the count of this tally is still; nil: always
	still  int64
	adds   int64 // units to be added; see Fleet.Add
	adding bool  // a call that adds or raises is under way
	past   past  // nil: Past was not called
}

const (
	tallyMark = "~" // begins the names of tallies in the store; those of rates begin with a digit
	// tallyPer is after which time the store counts from zero again, so that it may forget
	// a count. Counts matter only from a request to its answer, which takes less.
	tallyPer = time.Hour

	// Unbounded is the bound of a count of which it is not known how far it may go.
	Unbounded = math.MaxInt64
)

// NewTally returns a tally of units; id names the limit in all processes.
func NewTally(id, unit string) *Tally { return &Tally{id: tallyMark + id, unit: unit, most: Unbounded} }

// Mark returns a new mark that tells all processes a number about t; what says which one. See
// [Fleet.Raise].
func (t *Tally) Mark(what string) *Tally { return NewTally(what+t.id, "mark") }

// Questions returns a new tally that counts how often processes asked while requests waited
// because t's limit had too little left. See [Fleet.Ask].
func (t *Tally) Questions() *Tally { return NewTally("q"+t.id, "questions") }

// Bound sets how far the count may go in what this process books from now on.
func (t *Tally) Bound(most int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = most
}

// BoundWhile is Bound until the count of other changes. From then on nothing is booked until
// Bound or BoundWhile is called again.
func (t *Tally) BoundWhile(most int64, other *Tally) {
	n, _ := other.Count()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most, t.while, t.still = most, other, n
}

// Count is the count that was last heard.
func (t *Tally) Count() (n int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.known
}

// Others is how many units other processes booked, as far as was heard.
func (t *Tally) Others() (n int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count - t.own, t.known
}

// gave notes that this process gives units back.
func (t *Tally) gave(units int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own -= units
}

// limit is t as a limit of the store, and its level as last heard.
func (t *Tally) limit(unit int) (store.Limit, float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := store.Limit{ID: t.id, Kind: store.CalendarLimit, Unit: unit, Per: tallyPer, Ends: time.Unix(0, 0), Size: float64(store.MaxAmount)}
	if t.while != nil {
		if n, _ := t.while.Count(); n != t.still {
			l.Size = 0.5
			return l, float64(t.count - t.shift)
		}
	}
	if t.most < Unbounded {
		l.Size = min(max(float64(t.most-t.shift), 0.5), l.Size) // half a unit holds none
	}
	return l, float64(t.count - t.shift)
}

// heard notes a level that the store said, after own units of this process were booked, in answer to a
// call that was sent then. It returns the count. A call that was sent after the last answer was heard
// has a later answer, whatever times they tell: the store's clock may have stepped back, or the last
// one told no time that can be.
func (t *Tally) heard(s store.Standing, level float64, own int64, sent time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := s.At > t.at || s.At < t.at && !t.when.After(sent)
	t.when = time.Now()
	t.own += own
	n := int64(level) + t.shift
	switch {
	case t.known && !later && (s.At < t.at || own > 0 && n < t.count): // a later answer was heard before
		return n
	case t.known && later && level < float64(t.count-t.shift)/2: // it fell too much for refunds: the next hour began, or the store lost its state
		t.shift = t.count + own - int64(level)
		n = t.count + own
	}
	t.known, t.at, t.count = true, s.At, n
	if t.past != nil {
		t.past = t.past.add(t.when, n)
	}
	return n
}

// isTally reports whether l is a tally's.
func isTally(l store.Limit) bool {
	return l.Kind == store.CalendarLimit && strings.HasPrefix(l.ID, tallyMark)
}

// withTallies adds the limits of ts to d, whose units are q's.
func (q *queue) withTallies(d *store.Draw, ts []*Tally) {
	for _, t := range ts {
		l, level := t.limit(slices.Index(q.units, t.unit))
		d.Limits = append(d.Limits, l)
		if d.Seen.Gen != 0 {
			d.Seen.Levels = append(slices.Clip(d.Seen.Levels), level)
		}
	}
}

// heard remembers what a call said of keys and tallies.
func (q *queue) heard(b store.Booking, r store.Booked, sent time.Time) {
	q.f.heard(b, r, sent)
	for i, d := range b.Draws {
		rated := ratedLimits(d)
		for j, t := range q.keys[i].Tallies {
			if k := rated + j; k < len(d.Limits) {
				t.heard(r.Keys[i], r.Keys[i].Levels[k], charged(d.Units[d.Limits[k].Unit], r.Outcome), sent)
			}
		}
	}
}

// ratedLimits is how many limits of d are those of rates.
func ratedLimits(d store.Draw) int {
	if i := slices.IndexFunc(d.Limits, isTally); i >= 0 {
		return i
	}
	return len(d.Limits)
}

// charged is what an outcome charges.
func charged(u store.UnitCost, o store.Outcome) int64 {
	switch o {
	case store.BookedOne:
		return u.First
	case store.BookedAll:
		return u.All
	}
	return 0
}

// after is what ws cost together; nil if q has no tallies, which need it.
func (q *queue) after(ws []*waiter) (sum []int64) {
	if !slices.ContainsFunc(q.keys, func(k Key) bool { return len(k.Tallies) > 0 }) {
		return nil
	}
	for _, w := range ws {
		if sum == nil {
			sum = make([]int64, len(w.cost))
		}
		for i, n := range w.cost {
			sum[i] += n
		}
	}
	return sum
}

// tallySpent reports whether r refuses because of a tally.
func tallySpent(b store.Booking, r store.Booked) bool {
	return (r.Outcome == store.Refused || r.Outcome == store.Impossible) && r.Draw >= 0 && r.Limit >= 0 &&
		isTally(b.Draws[r.Draw].Limits[r.Limit])
}

// Counts is what the count of t was just after g was booked.
func (g *Grant) Counts(t *Tally) (n int64, known bool) {
	if g == nil || g.batch == nil {
		return 0, false
	}
	b := g.batch
	for i, d := range b.booking.Draws {
		rated := ratedLimits(d)
		for j, own := range b.q.keys[i].Tallies {
			if own == t && rated+j < len(d.Limits) {
				t.mu.Lock()
				defer t.mu.Unlock()
				n = int64(b.booked.Keys[i].Levels[rated+j]) + t.shift
				if g.after != nil {
					n -= g.after[d.Limits[rated+j].Unit]
				}
				return n, true
			}
		}
	}
	return 0, false
}

// Alone reports whether g was granted without the store.
func (g *Grant) Alone() bool { return g != nil && g.batch == nil }
