package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// While as many requests are under way as may be, it is not known when the next one ends, and
// no place can be booked ahead. So processes that wait ask the store again and again. If it
// were left to chance who asks next when a place is free, one process would start twice as
// many requests as another within some seconds. So they stand in a line, see line: a process
// asks when its turn should have come, and then again and again until it has a place. Whoever
// finds a free place may take it, so nothing is lost if those that are ahead do not come.

const (
	// flightPoll is the longest time between two questions of a process whose turn has come.
	flightPoll = 100 * time.Millisecond
	// flightStill: if the line has not moved for long, it probably will not for long. So the
	// time between two questions is at least a fourth of the time since it last moved.
	flightStill = 4
	// flightAsk, and flightAskEach for each process that waits, are the least time between two
	// questions of a process, so that a fleet asks some thousand times a second at most.
	flightAsk     = 2500 * time.Microsecond
	flightAskEach = time.Millisecond
	// flightEarly is which part of the time until its turn a process waits before it asks. If
	// each waited for all of it, places would be free where requests end sooner than expected:
	// 32 processes would be served 2 % less. If they waited for half of it, they would ask
	// half as often again.
	flightEarly = 0.75
)

// line is where this process stands among those that wait for places of a key. Each process
// that was given a place goes to the end, behind all others that wait. The store counts all
// places that it has given, and tells how many processes wait.
type line struct {
	given int64     // places that all processes were given, as far as was heard
	moved time.Time // when that was last heard to have grown
	turn  int64     // the turn of this process comes when so many were
	among int64     // processes that wait, with this one
}

// heard notes how many places the store has given, the last own of them to this process. If that
// is far less than before, the store counts from zero again.
func (l *line) heard(given, own, among int64, now time.Time) {
	if given < l.given/2 {
		l.turn, l.given = l.turn-l.given, 0
	}
	if given > l.given {
		l.given, l.moved = given, now
	}
	if l.among = among; own > 0 {
		l.turn = given + own*among
	}
}

// ahead is how many places others get before it is this process's turn.
func (l *line) ahead() int64 { return min(l.turn-l.given, l.among) }

// heard learns from an answer of the store. q.mu is held.
func (p *flight) heard(q *queue, b store.Booking, r store.Booked, now time.Time) {
	p.waits, p.over = 0, false
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
		p.lines[i].heard(int64(levels[at+2]), charged(b.Draws[i].Units[p.unit+2], r.Outcome), int64(waits+1), now)
		if w := q.keys[i].Window; w != nil {
			w.hears(int64(levels[at]), flightShort(b, r))
			p.over = int64(levels[at]) > q.keys[i].bound() // now
		}
	}
}

// yield is called after a booking. It puts off the next question, so that others that wait ask
// first.
func (p *flight) yield(q *queue, now time.Time) {
	if p.unit == 0 {
		return
	}
	p.since, q.turn.more = time.Time{}, 0 // more calls than one do not make places
	if p.waits > 0 {
		if at := now.Add(p.pause(q, now, 0)); at.After(q.notBefore) {
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
	d := p.pause(q, now, now.Sub(p.since))
	q.notBefore = now.Add(d/2 + rand.N(d)) // at random, so that no process is always a little too late
	q.refused = shortage{cost: cost, until: q.notBefore, draw: -1, limit: -1, guess: q.notBefore.Sub(now)}
	q.dropLate(now)
}

// hasten lets q ask when half of the time is over for which its first request may wait, as those
// that are ahead may not come.
func (p *flight) hasten(q *queue, now time.Time) {
	if p.unit == 0 {
		return
	}
	half := q.waiting[0].ends.Sub(now) / 2
	if at := now.Add(half); half > flightAsk && at.Before(q.notBefore) {
		q.notBefore = at
	}
}

// pause is the time until the next question of a process that has waited for so long. The next
// place is free after the time that a request has its own, divided by the number of places. If
// it is not known how long that is, it is taken to be as long as this process has waited.
func (p *flight) pause(q *queue, now time.Time, waited time.Duration) time.Duration {
	d := max(flightAsk, time.Duration(p.waits+1)*flightAskEach)
	for i, k := range q.keys {
		most := k.bound()
		if most == 0 {
			continue
		}
		lasts := p.took
		if k.Window != nil {
			lasts = k.Window.lasts()
		}
		next := cmp.Or(lasts, min(waited, waitPer/2)) / time.Duration(most)
		if n := p.lines[i].ahead(); n > 0 {
			d = max(d, min(max(next, time.Duration(flightEarly*float64(n)*float64(next))), waitPer))
		} else {
			d = max(d, min(next, flightPoll), min(now.Sub(p.lines[i].moved)/flightStill, waitPer))
		}
	}
	return d
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
