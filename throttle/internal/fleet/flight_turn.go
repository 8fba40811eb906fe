package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// While as many requests are under way as may be, it is not known when the next one ends.
// So processes that wait ask the store again and again, and those that have the fewest
// requests under way ask most often.

const (
	// flightPoll is the longest time between two questions of a process. If sixteen
	// processes have waited for long, a free place is then taken within about 6 ms.
	flightPoll = 100 * time.Millisecond
	// flightAsk, and flightAskEach for each process that waits, are the time between two
	// questions of a process that has an equal part of the places, so that a fleet asks
	// about a thousand times a second at most. A process that has no place asks four
	// times as often.
	flightAsk     = 5 * time.Millisecond
	flightAskEach = 2 * time.Millisecond
	// flightPart: the time between two questions is up to an eighth of the time that
	// requests are under way, or of the time that they have waited. A process that has
	// just got a place and has its part does not ask for an eighth, up to mostFlightTurn.
	flightPart     = 8
	mostFlightTurn = 2 * flightPoll
	// flightAsks is how many times all processes together ask while a request has a place
	// of a Window. A place is then free for a 24th of the time. Without it, a host that is
	// slow and serves few at a time would cost more than a hundred calls for each request.
	flightAsks = 24
)

// heard learns from an answer of the store. q.mu is held.
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

// yield is called after a booking. It puts off the next question, so that others that wait ask
// first.
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

// wait is called after a refusal. It tells the store that q waits, and sets when q asks again.
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
	if p.took > 0 { // more often than processes that have their part, and more and more often with time
		seldom = min(seldom, p.took/(2*flightPart)/min(4, 1+waited/p.took))
	}
	part := p.part(q)
	d := max(p.turn(part), min(seldom, flightPoll), p.seldom(q, part, waited))
	q.notBefore = now.Add(d/2 + rand.N(d)) // at random, so that no process is always a little too late
	q.refused = shortage{cost: cost, until: q.notBefore, draw: -1, limit: -1}
	q.dropLate(now)
}

// seldom is the least time between two questions of a process for a place of a Window, by the
// rule of flightAsks. A process that has its part asks a fourth as often. If it is not known how
// long a request has its place, that is taken to be as long as this process has waited.
func (p *flight) seldom(q *queue, part float64, waited time.Duration) time.Duration {
	for _, k := range q.keys {
		if k.Window != nil {
			all := cmp.Or(k.Window.lasts(), min(waited, waitPer/2)) * time.Duration(p.waits+1) / flightAsks
			return min(all+time.Duration(part*float64(3*all)), waitPer)
		}
	}
	return 0
}

// turn is the time between two questions of a process, where part is what part returns.
func (p *flight) turn(part float64) time.Duration {
	all := max(flightAsk, time.Duration(p.waits+1)*flightAskEach, min(p.took/flightPart, flightPoll/2))
	return all/4 + time.Duration(part*float64(all*3/4))
}

// part is how many requests this process has under way, divided by an equal part of what may
// be; at most 1.
func (p *flight) part(q *queue) float64 {
	part := 0.0
	for _, k := range q.keys {
		if most := k.bound(); most > 0 {
			part = max(part, float64(q.f.Flies(k))*float64(p.waits+1)/float64(most))
		}
	}
	return min(part, 1)
}

// crowded reports whether this process has its share under way. It is asked while the store is
// gone.
func (p *flight) crowded(q *queue) bool {
	return slices.ContainsFunc(q.keys, func(k Key) bool {
		most := k.bound()
		return most > 0 && q.f.Flies(k) >= q.f.places(k, most)
	})
}

// places is f's share of so many places of k, while the store is gone. What is left over when
// they are dealt out evenly is nobody's if k has a budget. Those of a window are dealt out by
// chance: of 31 places for sixteen processes, one each would be half of what the host serves.
func (f *Fleet) places(k Key, most int64) int64 {
	share := float64(most) / float64(f.c.Members)
	if k.Window != nil {
		share += f.deal
	}
	return max(1, int64(share))
}

// without is cost without the unit of flight, which is given back in another way.
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
