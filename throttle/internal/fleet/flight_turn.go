package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// While as many requests are under way as may be, nobody knows when the next one ends.
// So processes that wait ask again and again, and those that have fewest most often.

const (
	// flightPoll is the longest time between two questions of a process: a place of
	// sixteen processes that wait for long is empty for 6 ms then.
	flightPoll = 100 * time.Millisecond
	// flightAsk and flightAskEach are for how long a process does not ask that has its
	// equal part: a fleet asks the store some thousand times a second at most. One that
	// has nothing asks four times as often.
	flightAsk     = 5 * time.Millisecond
	flightAskEach = 2 * time.Millisecond
	// flightPart is the part of the time that requests are under way, or that they have
	// waited, after which is asked. Those that have their part leave it to the others, up
	// to mostFlightTurn.
	flightPart     = 8
	mostFlightTurn = 2 * flightPoll
	// flightAsks is how often processes ask while a place of a Window is taken: it is empty
	// for a 24th of the time then. A host that is slow and bears few would cost more than a
	// hundred calls for each request otherwise.
	flightAsks = 24
)

// heard takes in an answer. q.mu is held.
func (p *flight) heard(q *queue, b store.Booking, r store.Booked, now time.Time) {
	p.waits, p.full, p.over = 0, false, false
	for i, at := range p.limit {
		if at < 0 {
			continue
		}
		levels := r.Keys[i].Levels
		waits := int(levels[at+1])
		if now.Sub(p.said) < waitPer {
			waits--
		}
		p.waits = max(p.waits, waits)
		full := levels[at] >= b.Draws[i].Limits[at].Size
		if w := q.keys[i].Window; w != nil {
			w.hears(int64(levels[at]), flightShort(b, r))
			most := q.keys[i].bound() // now
			full, p.over = int64(levels[at]) >= most, int64(levels[at]) > most
		}
		p.full = p.full || full
	}
}

// yield lets others that wait ask first, after a booking.
func (p *flight) yield(q *queue, now time.Time) {
	if p.unit == 0 {
		return
	}
	p.since, q.turn.more = time.Time{}, 0 // more calls than one do not make places
	if p.full && p.waits > 0 {
		part := p.part(q)
		turn := time.Duration(part * float64(min(p.took/flightPart, mostFlightTurn)))
		if at := now.Add(max(p.turn(part), turn)); at.After(q.notBefore) {
			q.notBefore, q.refused = at, shortage{draw: -1, limit: -1}
		}
	}
}

// wait says that q waits, and when to ask again for what costs that.
func (p *flight) wait(q *queue, cost []int64, now time.Time) {
	if p.since.IsZero() {
		p.since = now
	}
	if now.Sub(p.said) >= waitPer {
		p.said = now
		units := make([]int64, len(q.units))
		units[p.unit+1] = 1
		q.force(units)
	}
	q.turn.more = 0
	waited := now.Sub(p.since)
	seldom := waited / (4 * flightPart)
	if p.took > 0 { // more often than those that have their part, and yet more with time
		seldom = min(seldom, p.took/(2*flightPart)/min(4, 1+waited/p.took))
	}
	part := p.part(q)
	d := max(p.turn(part), min(seldom, flightPoll), p.seldom(q, part, waited))
	q.notBefore = now.Add(d/2 + rand.N(d)) // nobody is always just too late
	q.refused = shortage{cost: cost, until: q.notBefore, draw: -1, limit: -1}
	q.dropLate(now)
}

// seldom is how often a process asks for a place of a Window: all of them together
// flightAsks times while a place is taken once, and those that have their part a fourth as often.
// One that does not know yet for how long that is takes it for as long as it has waited.
func (p *flight) seldom(q *queue, part float64, waited time.Duration) time.Duration {
	for _, k := range q.keys {
		if k.Window != nil {
			all := cmp.Or(k.Window.lasts(), min(waited, waitPer/2)) * time.Duration(p.waits+1) / flightAsks
			return min(all+time.Duration(part*float64(3*all)), waitPer)
		}
	}
	return 0
}

// turn is for how long a process does not ask that has such a part of its equal part.
func (p *flight) turn(part float64) time.Duration {
	all := max(flightAsk, time.Duration(p.waits+1)*flightAskEach, min(p.took/flightPart, flightPoll/2))
	return all/4 + time.Duration(part*float64(all*3/4))
}

// part is how much of an equal part of what may be under way this process has, up to 1.
func (p *flight) part(q *queue) float64 {
	part := 0.0
	for _, k := range q.keys {
		if most := k.bound(); most > 0 {
			part = max(part, float64(q.f.flies(k))*float64(p.waits+1)/float64(most))
		}
	}
	return min(part, 1)
}

// crowded reports that this process has its share under way, while the store is gone.
func (p *flight) crowded(q *queue) bool {
	return slices.ContainsFunc(q.keys, func(k Key) bool {
		most := k.bound()
		return most > 0 && q.f.flies(k) >= max(1, most/int64(q.f.c.Members))
	})
}

// without is cost without what is under way.
func (p *flight) without(cost []int64) []int64 {
	if p.unit == 0 {
		return cost
	}
	c := slices.Clone(cost)
	c[p.unit] = 0
	return c
}

func (p *flight) close() {
	if p.renews != nil {
		p.renews.Stop()
		p.renews = nil
	}
}
