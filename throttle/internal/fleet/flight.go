package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A limit on requests under way is a Log in the store. Each unit in its window is a
// request under way. A process renews its units, which means that it dates them anew, before
// they leave the window. When a request ends, its unit is given back. If a process was killed,
// its units leave the window by themselves. A second Log counts processes that wait: each of
// them books one unit per window. A third limit, which is never reached, counts the places that
// were given: by these two the processes take turns, see line.
const (
	// The limits' names, and their units; no unit of a budget begins with "~".
	flightID, flightUnit = "flight", "~flight"
	waitID, waitUnit     = "wait", "~wait"
	startID, startUnit   = "start", "~start"

	// flightSilence is the window of the first Log: after this time the units of a silent
	// process are free. If a process stands still for longer, the limit may be exceeded by
	// the number of its requests under way.
	flightSilence = 10 * time.Second
	// flightDue is how often units are renewed. A store that has lost its state grants
	// nothing for store.Ahead: within that time all processes have renewed theirs.
	flightDue = store.Ahead * 3 / 4
	// waitPer is the window of the second Log: so often a process says that it waits.
	waitPer = time.Second
	// startPer is after which time the places that were given are counted from zero again. The
	// store keeps the key for no longer than that.
	startPer = time.Minute
)

// flight is the requests of a queue that are under way, if a key bounds their number.
type flight struct {
	unit    int           // index of flightUnit in the queue's units; those of waitUnit and startUnit follow. Zero: no key bounds them
	limit   []int         // per key, the index of the first Log in its limits; negative: it has none
	held    []*aloft      // units to be renewed, oldest first
	ended   []*aloft      // units to be given back
	ending  bool          // a call that gives back is under way
	renews  *time.Timer   // for the next renewal; nil: not armed
	renewal bool          // a call that renews is under way
	waits   int           // other processes that wait, as far as was heard
	over    bool          // more are under way than may be, as far as was heard
	said    time.Time     // when this process last said that it waits
	since   time.Time     // when it began to wait; zero: it does not
	took    time.Duration // how long requests are under way, smoothed
	lines   []line        // per key
}

// aloft is units that the store counts in one place.
type aloft struct {
	place *place // nil: the store does not know of them
	n     int64
	moves bool  // a call that renews them is under way
	ended int64 // how many requests have ended during that call
}

// begins notes that g is under way. q.mu is held.
func (p *flight) begins(q *queue, g *Grant) {
	if p.unit == 0 {
		return
	}
	g.flies = true
	q.f.fly(q.keys, 1)
	if p.patience(q) > 0 {
		return
	}
	if last := len(p.held) - 1; g.place != nil && last >= 0 && p.held[last].place == g.place && !p.held[last].moves {
		p.held[last].n++
	} else {
		p.held = append(p.held, &aloft{place: g.place, n: 1})
	}
	if g.place == nil {
		p.arm(q, flightDue/8)
	} else {
		p.arm(q, flightDue)
	}
}

// Done notes that g's request is no longer under way. Only the first call counts.
func (g *Grant) Done() {
	if g == nil {
		return
	}
	q := g.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if !g.flies {
		return
	}
	g.flies = false
	now, p := time.Now(), &q.flight
	p.took += (max(0, now.Sub(g.ready)) - p.took) / 8
	q.f.fly(q.keys, -1)
	if per := p.patience(q); per == 0 {
		p.drop(q)
	} else if g.place != nil && now.Sub(g.place.begins) < per {
		p.ends(q, g.place, 1)
	}
	q.pump(now)
}

// drop gives back one unit: the oldest, as it does not matter which. q.mu is held.
func (p *flight) drop(q *queue) {
	h := p.held[0]
	if h.n--; h.moves {
		h.ended++
	} else {
		p.ends(q, h.place, 1)
	}
	if h.n == 0 {
		p.held = p.held[1:]
	}
	p.rest()
}

// patience is for how long a request counts, if a key has a Window; zero: until it ends.
func (p *flight) patience(q *queue) (most time.Duration) {
	for _, k := range q.keys {
		if k.Window != nil {
			_, per := k.Window.limit()
			most = max(most, per)
		}
	}
	return most
}

// rest stops the timer if there is nothing to renew.
func (p *flight) rest() {
	if len(p.held) == 0 {
		p.close()
	}
}

// ends gives back n units that the store counts at at. q.mu is held.
func (p *flight) ends(q *queue, at *place, n int64) {
	if at == nil || n == 0 {
		return
	}
	if last := len(p.ended) - 1; last >= 0 && p.ended[last].place == at {
		p.ended[last].n += n
	} else {
		p.ended = append(p.ended, &aloft{place: at, n: n})
	}
	if !p.ending && q.f.guard.allows(time.Now()) {
		if p.ending = q.f.start(q.land); p.ending {
			q.lands()
		}
	}
}

// arm sets the timer for a renewal after d, unless one is set. q.mu is held.
func (p *flight) arm(q *queue, d time.Duration) {
	if p.renews == nil && !p.renewal {
		p.renews = time.AfterFunc(d, q.ringFlight)
	}
}

func (q *queue) ringFlight() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flight.renews = nil
	q.flight.renew(q, time.Now())
}

// renew renews units that are due, and tells the store of those that it does not know. q.mu is
// held.
func (p *flight) renew(q *queue, now time.Time) {
	var due []*aloft
	next := flightDue
	for _, h := range p.held {
		if in := h.due(now); in > 0 {
			next = min(next, in)
		} else if len(due) < store.MaxParts {
			due = append(due, h)
		}
	}
	ok, probe, _ := false, false, now
	if len(due) > 0 {
		if ok, probe, _ = q.f.guard.enter(now); probe {
			q.probe(now) // perhaps nobody waits who could
		}
		next = flightDue / 8
	}
	if ok {
		b := q.dated(due, now)
		if p.renewal = q.f.start(func(ctx context.Context) { q.renewed(ctx, b, due, now) }); p.renewal {
			for _, h := range due {
				h.moves = true
			}
			return
		}
	}
	if len(p.held) > 0 && !q.f.ended() {
		p.arm(q, next)
	}
}

// due is after how long h has to be renewed.
func (h *aloft) due(now time.Time) time.Duration {
	if h.place == nil {
		return 0
	}
	return h.place.begins.Add(flightDue).Sub(now)
}

// dated is a booking that renews due.
func (q *queue) dated(due []*aloft, now time.Time) store.Booking {
	b := q.booking(now)
	b.Force = true // it books nothing, so that pauses and short keys do not matter
	for i := range b.Draws {
		for _, h := range due {
			m := store.Moved{Units: make([]int64, len(q.units))}
			if m.Units[q.flight.unit] = h.n; h.place != nil {
				m.Gen, m.From = h.place.gens[i], h.place.from[i]
			}
			b.Draws[i].Moved = append(b.Draws[i].Moved, m)
		}
	}
	return b
}

// renewed makes the call of renew.
func (q *queue) renewed(ctx context.Context, b store.Booking, due []*aloft, now time.Time) {
	r, err := q.book(ctx, b, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &q.flight
	p.renewal = false
	if err == nil {
		p.gather(due, newBatch(q, b, r, now).place)
	}
	for _, h := range due {
		p.ends(q, h.place, h.ended)
		h.moves, h.ended = false, 0
	}
	p.renew(q, time.Now())
}

// gather joins due, because the store counts all of its units at at now.
func (p *flight) gather(due []*aloft, at *place) {
	all := &aloft{place: at}
	for _, h := range due {
		all.n += h.n
		h.n, h.place = 0, at
	}
	p.held = slices.DeleteFunc(p.held, func(h *aloft) bool { return h.n == 0 })
	if all.n > 0 {
		p.held = append(p.held, all)
	}
}

// Flies reports whether g's request counts as under way until Done is called.
func (g *Grant) Flies() bool {
	if g == nil {
		return false
	}
	g.q.mu.Lock()
	defer g.q.mu.Unlock()
	return g.flies
}
