package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// lateness makes a rate hold at the server, too, where a request may arrive long after its
// room was booked. A store forgets the units of a Log when Per and the Spread have passed since
// the booking. If the answer comes later than the Spread, the store has to be told to date the
// units by the answer. The next booking carries that news, or a call of its own if there is
// none soon; such a call also dates anew units whose answers have not come for long. Either
// happens within an eighth of the window, so the last change of a date comes after little more
// than a quarter of it. Bookings reach half a window ahead, so none is made on room that such a
// change takes away.
//
// A window by the store's clock is not kept longer by the Spread. So the next booking tells the
// store of all units that were on their way when one ended, answered or not: they count in the
// next window, too.
type lateness struct {
	atOnce  bool          // nothing is booked ahead
	slack   time.Duration // how late an answer may be without a new date
	due     time.Duration // within which time the store is told; zero: no rate needs that
	aligned []meter.Spec  // rates whose windows are by the clock
	open    []*Grant      // not answered
	late    []*Grant      // answered late, but the store was not told
	timer   *time.Timer   // nil: not armed
}

// mostSilence is the longest due, as the eighth of a long window would be: a store that loses
// its state gets it back from what it is told.
const mostSilence = 10 * time.Second

// place is where a store counts units: the time from which they count.
type place struct {
	begins time.Time // that time or a later one, by this process's clock
	gens   []int64   // the generation of the store's state, per draw
	from   []int64   // that time by the store's clock, in microseconds, per draw
	ends   time.Time // when the first window by the store's clock that it is in ends; zero: there is none
	told   bool      // the store is being told of what was not answered then
}

// over reports whether a window by the store's clock has ended since p, of which the store is
// not told.
func (p *place) over(now time.Time) bool { return !p.ends.IsZero() && !p.told && !now.Before(p.ends) }

// A move is one store.Moved, and the grants whose units it moves.
type move struct {
	place  *place // from where
	open   bool   // the grants are not answered
	age    time.Duration
	units  []int64
	grants []*Grant
}

// end sets when the first window of rates ends that p is in.
func (n *lateness) end(p *place) {
	if len(n.aligned) == 0 || len(p.from) == 0 {
		return
	}
	at := time.UnixMicro(p.from[0])
	for _, r := range n.aligned {
		if end := p.begins.Add(meter.WindowEnd(at.In(r.Align), r.Per).Sub(at)); p.ends.IsZero() || end.Before(p.ends) {
			p.ends = end
		}
	}
}

// newLateness returns the lateness that the rates of keys need.
func newLateness(keys []Key, c Config, now time.Time) lateness {
	var n lateness
	for _, d := range keys {
		n.atOnce = n.atOnce || d.AtOnce
		for _, r := range d.Rates {
			if r.Align != nil {
				n.aligned = append(n.aligned, r)
			}
			slack, due := spread(r, c), min(r.Per/8, mostSilence)
			switch storeLimit(r, c, now)[0].Kind {
			case store.MeterLimit:
				continue
			case store.LogLimit:
				slack += c.Lease
			}
			if n.due == 0 {
				n.slack, n.due = slack, due
			}
			n.slack, n.due = min(n.slack, slack), min(n.due, due)
		}
	}
	return n
}

// ahead is how far ahead bookings may reach.
func (n *lateness) ahead() time.Duration {
	if n.atOnce {
		return 0
	}
	if n.due == 0 {
		return store.Ahead
	}
	return min(store.Ahead, 4*n.due)
}

// hold watches g until it is answered.
func (n *lateness) hold(q *queue, g *Grant) {
	if n.due > 0 && g.batch != nil {
		n.open = append(n.open, g)
		g.open = len(n.open)
		n.arm(q, time.Until(g.place.begins.Add(n.due)))
	}
}

// drop ends the watch on g, and reports whether there was one.
func (n *lateness) drop(g *Grant) bool {
	if g.open == 0 {
		return false
	}
	last := n.open[len(n.open)-1]
	last.open, n.open[g.open-1] = g.open, last
	n.open[len(n.open)-1] = nil
	n.open, g.open = n.open[:len(n.open)-1], 0
	return true
}

// Answered notes that the answer has come: the server has seen g's request by now.
func (g *Grant) Answered() {
	if g == nil || g.batch == nil {
		return
	}
	now, q := time.Now(), g.batch.q
	q.mu.Lock()
	defer q.mu.Unlock()
	n := &q.late
	if n.drop(g) && (now.Sub(g.place.begins) > n.slack || g.place.over(now)) {
		g.came = now
		n.late = append(n.late, g)
		n.arm(q, n.due)
	}
	n.rest()
}

// arm sets the timer by which the store is told after d, unless one is set.
func (n *lateness) arm(q *queue, d time.Duration) {
	if n.timer == nil {
		n.timer = time.AfterFunc(max(d, n.due/8), q.ringLate)
	}
}

// rest stops the timer when there is nothing to tell.
func (n *lateness) rest() {
	if n.timer != nil && len(n.open)+len(n.late) == 0 {
		n.timer.Stop()
		n.timer = nil
	}
}

// close tells the store what it does not know yet, and ends the watch on all grants.
func (n *lateness) close(q *queue) {
	q.tellLate(time.Now(), 0)
	for len(n.open) > 0 {
		n.drop(n.open[0])
	}
	n.late, n.due = nil, 0
	n.rest()
}

func (q *queue) ringLate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := &q.late
	n.timer = nil
	now := time.Now()
	q.tellLate(now, n.due)
	next := now.Add(n.due)
	for _, g := range n.open {
		if t := g.place.begins.Add(n.due); t.Before(next) {
			next = t
		}
	}
	if len(n.open)+len(n.late) > 0 {
		n.arm(q, next.Sub(now))
	}
}

// tellLate tells the store, in a call of its own, what was answered late and
// what has been open for that long. q.mu is held.
func (q *queue) tellLate(now time.Time, open time.Duration) {
	if ok, probe, _ := q.f.guard.enter(now); !ok {
		if probe {
			q.probe(now) // perhaps nobody waits who could
		}
		return
	}
	b := q.booking(now)
	b.Force = true // it books nothing, so that pauses and short keys do not matter
	told := q.late.tell(&b, now, open)
	if len(told) == 0 {
		return
	}
	ok := q.f.start(func(ctx context.Context) {
		r, err := q.book(ctx, b, now)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.late.heard(q, told, now, r, err)
	})
	if !ok {
		q.late.heard(q, told, now, store.Booked{}, nil)
	}
}

// tell puts what the store does not know yet into b: units that were answered late, and units
// that have not been answered for the time open; negative: none of these.
func (n *lateness) tell(b *store.Booking, now time.Time, open time.Duration) (told []*move) {
	add := func(g *Grant, age time.Duration) bool {
		i := slices.IndexFunc(told, func(t *move) bool { return t.place == g.place && t.open == (g.open > 0) })
		if i < 0 {
			if len(told) == store.MaxParts {
				return false // there is no room; a later call tells it
			}
			i = len(told)
			told = append(told, &move{place: g.place, open: g.open > 0, age: age, units: make([]int64, len(g.cost))})
		}
		t := told[i]
		t.age, t.grants = min(t.age, age), append(t.grants, g)
		for j, c := range g.q.flight.without(g.cost) {
			t.units[j] += c
		}
		return true
	}
	n.late = slices.DeleteFunc(n.late, func(g *Grant) bool {
		age := now.Sub(g.came)
		if !g.place.over(g.came) {
			age += n.slack
		}
		return add(g, age)
	})
	if open >= 0 || len(n.aligned) > 0 {
		for _, g := range n.open {
			if open >= 0 && now.Sub(g.place.begins) >= open || g.place.over(now) {
				add(g, 0)
			}
		}
	}
	for _, t := range told {
		t.place.told = t.place.told || t.open
	}
	for i := range b.Draws {
		for _, t := range told {
			b.Draws[i].Moved = append(b.Draws[i].Moved, store.Moved{Gen: t.place.gens[i], From: t.place.from[i], Age: t.age, Units: t.units})
		}
	}
	return told
}

// heard notes that the store knows what was told, or that the call failed. q.mu is held.
func (n *lateness) heard(q *queue, told []*move, sent time.Time, r store.Booked, err error) {
	known := err == nil && (r.Outcome == store.BookedOne || r.Outcome == store.BookedAll)
	for _, t := range told {
		if known {
			p := &place{begins: sent.Add(-t.age)}
			for _, k := range r.Keys {
				p.gens, p.from = append(p.gens, k.Gen), append(p.from, k.At-t.age.Microseconds())
			}
			n.end(p)
			for _, g := range t.grants {
				g.place = p
			}
			continue
		}
		t.place.told = t.place.told && !t.open
		if !t.open && n.due > 0 {
			n.late = append(n.late, t.grants...)
			n.arm(q, n.due)
		}
	}
	n.rest()
}
