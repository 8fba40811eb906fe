package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A move is one store.Moved, and the grants whose units it moves.
type move struct {
	place  *place // from where
	open   bool   // the grants are not answered
	age    time.Duration
	units  []int64
	grants []*Grant
}

func (q *queue) ringLate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := &q.late
	n.timer = nil
	now := time.Now()
	q.tellLate(now, n.due)
	if len(n.late) > 0 {
		n.arm(q, now, now.Add(n.due))
	}
	for _, g := range n.open {
		n.arm(q, now, n.next(g))
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
		if g.place.told {
			return false
		}
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
			now := time.Now()
			n.arm(q, now, now.Add(n.due))
		}
	}
	if known { // some of these were answered meanwhile
		n.late = slices.DeleteFunc(n.late, func(g *Grant) bool { return !g.place.told && !n.untold(g, g.came) })
	}
	n.rest()
}
