package fleet

import (
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
// A window by the store's clock is not kept longer by the Spread. So the store is told of all
// units that are on their way when one ends, as soon as it has: they count in the next window,
// too.
type lateness struct {
	atOnce  bool          // nothing is booked ahead
	slack   time.Duration // how late an answer may be without a new date
	due     time.Duration // within which time the store is told; zero: no rate needs that
	aligned []meter.Spec  // rates whose windows are by the clock
	open    []*Grant      // not answered
	late    []*Grant      // answered late, but the store was not told
	timer   *time.Timer   // nil: not armed
	rings   time.Time     // when timer fires
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
	told   bool      // the store is being told of what is not answered
}

// over reports whether a window by the store's clock has ended since p.
func (p *place) over(now time.Time) bool { return !p.ends.IsZero() && !now.Before(p.ends) }

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
		n.arm(q, time.Now(), n.next(g))
	}
}

// next is when the store is told of g if it is not answered by then.
func (n *lateness) next(g *Grant) time.Time {
	at := g.place.begins.Add(n.due)
	if end := g.place.ends; !end.IsZero() && end.Before(at) {
		return end
	}
	return at
}

// untold reports whether the store has to be told of what was answered at that time.
func (n *lateness) untold(g *Grant, at time.Time) bool {
	return at.Sub(g.place.begins) > n.slack || g.place.over(at)
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
	if n.drop(g) && n.untold(g, now) {
		g.came = now
		n.late = append(n.late, g)
		n.arm(q, now, now.Add(n.due))
	}
	n.rest()
}

// arm sets the timer by which the store is told at that time, unless it is told before. What
// should have been told already was tried in vain, so it waits for an eighth of due.
func (n *lateness) arm(q *queue, now, at time.Time) {
	if !at.After(now) {
		at = now.Add(n.due / 8)
	}
	switch {
	case n.timer == nil:
		n.timer = time.AfterFunc(at.Sub(now), q.ringLate)
	case at.Before(n.rings):
		n.timer.Reset(at.Sub(now))
	default:
		return
	}
	n.rings = at
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
