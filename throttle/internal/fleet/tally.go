package fleet

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Tally is what all processes drew of a limit that nobody configured, but that
// the server states. The store counts the units booked. Each process knows from an
// answer, and from the count when its request was booked, how far the count may go
// until the limit is spent: of two processes that book at once the store refuses the
// one for which nothing is left. No process has to be told what another one heard.
// It is safe for concurrent use.
type Tally struct {
	id, unit string

	mu     sync.Mutex
	known  bool
	at     int64 // when the store last changed it, by its clock
	count  int64 // booked since this process knows it
	shift  int64 // what of that the store counts no more
	own    int64 // what of all that was ever counted this process booked
	most   int64
	while  *Tally // most holds while the count of this one is still
	still  int64
	adds   int64 // that are to be added; see Fleet.Add
	adding bool  // a call is on its way
	past   past  // nil: nobody asked for it
}

const (
	tallyMark = "~" // begins the names of tallies; those of rates begin with a digit
	// tallyPer is after what time a count begins anew, so that a store may forget
	// it. What it was matters only from a request to its answer.
	tallyPer = time.Hour

	// Unbounded is a limit of which nobody knows what is left.
	Unbounded = math.MaxInt64
)

// NewTally returns a tally of units; id names the limit in all processes.
func NewTally(id, unit string) *Tally { return &Tally{id: tallyMark + id, unit: unit, most: Unbounded} }

// Mark returns what tells how far the count of t may go, see [Fleet.Raise].
func (t *Tally) Mark() *Tally { return NewTally("m"+t.id, "mark") }

// Bound lets the count go up to most, in what this process books from now on.
func (t *Tally) Bound(most int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = most
}

// BoundWhile is Bound until the count of other goes on: then nothing of t is booked until
// it is bound anew.
func (t *Tally) BoundWhile(most int64, other *Tally) {
	n, _ := other.Count()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most, t.while, t.still = most, other, n
}

// Count is how far the count was when it was last heard of.
func (t *Tally) Count() (n int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.known
}

// Others is how many units other processes booked, as far as this one heard.
func (t *Tally) Others() (n int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count - t.own, t.known
}

// gave takes in that units of this process's go back.
func (t *Tally) gave(units int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own -= units
}

// limit is t as a store keeps it, and its level as it was last heard of.
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

// heard takes in a level, after own units were booked, and returns the count.
func (t *Tally) heard(s store.Standing, level float64, own int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own += own
	n := int64(level) + t.shift
	switch {
	case t.known && (s.At < t.at || s.At == t.at && own > 0 && n < t.count): // an answer that was overtaken
		return n
	case t.known && s.At > t.at && level < float64(t.count-t.shift)/2: // no refund, but the next hour, or a store that lost it
		t.shift = t.count + own - int64(level)
		n = t.count + own
	}
	t.known, t.at, t.count = true, s.At, n
	if t.past != nil {
		t.past = t.past.add(time.Now(), n)
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

// heard remembers the standings that a call brought.
func (q *queue) heard(b store.Booking, r store.Booked) {
	q.f.heard(b, r)
	for i, d := range b.Draws {
		rated := ratedLimits(d)
		for j, t := range q.keys[i].Tallies {
			if k := rated + j; k < len(d.Limits) {
				t.heard(r.Keys[i], r.Keys[i].Levels[k], charged(d.Units[d.Limits[k].Unit], r.Outcome))
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

// after is what ws cost together, if there are tallies to count for; else nil.
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

// Counts is how far the count of t was when g had been booked.
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
