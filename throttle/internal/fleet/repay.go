package fleet

import (
	"context"
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// repay charges the store with units that were granted without it and still count, before
// others can book them there. It is called with the first answer after an outage,
// on a call's goroutine, and returns Deadline after begin at the latest. If it fails, it is
// called again with the next answer.
func (q *queue) repay(ctx context.Context, begin time.Time) {
	now := time.Now()
	q.mu.Lock()
	local, apart := q.local, q.apart
	q.local = nil
	q.mu.Unlock()
	if local == nil {
		return
	}
	b, owes := q.rated(now), false
	b.Force = true
	for i := range b.Draws {
		owes = owe(&b.Draws[i], local[i], now, now.Sub(apart), q.f.c.Members) || owes
	}
	if !owes {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, begin.Add(q.f.c.Deadline))
	defer cancel()
	r, err := q.f.store.Book(ctx, b)
	if err == nil {
		q.heard(b, r, now)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.local == nil {
		q.local, q.apart = local, apart
	}
}

// owe puts into d what l granted within alone, and reports whether there is any. Units that
// have not drained from a meter become a cost. Units that still count in a window become
// store.Moved, with their age.
func owe(d *store.Draw, l store.Ledger, now time.Time, alone time.Duration, members int) bool {
	any := false
	for u := range d.Units {
		cost := owedToMeters(d, u, l, now, alone, members)
		d.Units[u].First, d.Units[u].All = cost, cost
		went, before := went(d, u, l, now, alone)
		for i := len(went) - 1; i >= 0 && cost > 0; i-- { // the cost counts in windows too
			n := min(cost, went[i].units)
			went[i].units -= n
			cost -= n
		}
		for _, w := range append(together(went, max(2, store.MaxParts/len(d.Units))-1), before) {
			if w.units > 0 && len(d.Moved) < store.MaxParts {
				m := store.Moved{Age: w.age, Units: make([]int64, len(d.Units))}
				m.Units[u] = w.units
				d.Moved = append(d.Moved, m)
			}
		}
		any = any || d.Units[u].First > 0 || len(d.Moved) > 0
	}
	return any
}

// owedToMeters is how many units u have not drained from meters. A share began with nothing
// left (see spent), which this process did not grant.
func owedToMeters(d *store.Draw, u int, l store.Ledger, now time.Time, alone time.Duration, members int) int64 {
	var owed float64
	for _, p := range d.Limits {
		if p.Unit == u && p.Kind == store.MeterLimit {
			p = partOf(p, members, 0)
			owed = max(owed, l.Level(now, p)-max(0, p.Size-p.Rate*alone.Seconds()))
		}
	}
	return int64(math.Ceil(owed - 1e-6))
}

// some is units that were granted at one time.
type some struct {
	age   time.Duration
	units int64
}

// went is the units u that were granted within the longest window of d, oldest first, and
// those that were granted before in the window of a Calendar.
func went(d *store.Draw, u int, l store.Ledger, now time.Time, alone time.Duration) (list []some, before some) {
	var per time.Duration
	var inLog, inDay int64
	for _, p := range d.Limits {
		switch {
		case p.Unit != u:
		case p.Kind == store.CalendarLimit:
			inDay = max(inDay, int64(l.Level(now, p)))
		case p.Kind == store.LogLimit && p.Per > per:
			list, inLog, per = nil, int64(l.Level(now, p)), p.Per
			for _, a := range l.Accounts {
				if a.Kind != p.Kind || a.ID != p.ID {
					continue
				}
				for _, e := range a.Entries {
					if age := now.Sub(time.UnixMicro(e.At)); age < per {
						list = append(list, some{max(0, age), int64(e.Units)})
					}
				}
			}
		}
	}
	return list, some{alone, max(0, inDay-inLog)}
}

// together joins elements of list until there are at most n, each with the age of its last
// units.
func together(list []some, n int) []some {
	for len(list) > n {
		half := list[:0]
		for i := 0; i < len(list); i += 2 {
			w := list[i]
			if i+1 < len(list) {
				w = some{list[i+1].age, w.units + list[i+1].units}
			}
			half = append(half, w)
		}
		list = half
	}
	return list
}
