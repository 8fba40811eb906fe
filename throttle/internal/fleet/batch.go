package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

func newQueue(f *Fleet, keys []Key) *queue {
	q := &queue{f: f, keys: slices.Clone(keys), late: newLateness(keys, f.c, time.Now()), far: f.guard.far()}
	q.units = []string{meter.Requests}
	for _, d := range keys {
		for _, r := range d.Rates {
			if slices.Index(q.units, r.Unit) < 0 {
				q.units = append(q.units, r.Unit)
			}
		}
		for _, t := range d.Tallies {
			if slices.Index(q.units, t.unit) < 0 {
				q.units = append(q.units, t.unit)
			}
		}
	}
	if slices.ContainsFunc(keys, func(d Key) bool { return d.bound() > 0 }) {
		q.flight.unit = len(q.units)
		q.units = append(q.units, flightUnit, waitUnit, startUnit)
	}
	for _, d := range keys {
		var ls []store.Limit
		if d.Window == nil && !slices.ContainsFunc(d.Rates, func(r meter.Spec) bool { return r.Align != nil }) {
			ls = q.limitsOf(d, time.Now())
		}
		q.limits = append(q.limits, ls)
		q.flight.limit = append(q.flight.limit, slices.IndexFunc(q.limitsOf(d, time.Now()), isFlight))
		q.flight.lines = append(q.flight.lines, line{})
	}
	return q
}

// draws reports whether q's keys are equal to ds, including their limits.
func (q *queue) draws(ds []Key) bool {
	return slices.EqualFunc(q.keys, ds, func(a, b Key) bool {
		return a.ID == b.ID && a.InFlight == b.InFlight && a.Window == b.Window && slices.Equal(a.Rates, b.Rates) && slices.Equal(a.Tallies, b.Tallies)
	})
}

// vector appends a cost by the units of q to v, which is empty.
func (q *queue) vector(v []int64, c map[string]int64) []int64 {
	for _, unit := range q.units {
		v = append(v, min(meter.CostOf(c, unit), store.MaxAmount/mostInBatch/2))
	}
	if p := &q.flight; p.unit > 0 {
		v[p.unit], v[p.unit+1], v[p.unit+2] = 1, 0, 1
	}
	return v
}

// booking returns a booking of no units from all keys of q. setCosts adds units.
func (q *queue) booking(now time.Time) store.Booking {
	b := q.rated(now)
	for i, k := range q.keys {
		q.withTallies(&b.Draws[i], k.Tallies)
	}
	return b
}

// rated is booking without tallies.
func (q *queue) rated(now time.Time) store.Booking {
	b := store.Booking{Draws: make([]store.Draw, 0, len(q.keys))}
	for k, d := range q.keys {
		ls := slices.Clone(q.limits[k])
		if ls == nil {
			ls = q.limitsOf(d, now)
		}
		us := make([]store.UnitCost, len(q.units))
		for i, unit := range q.units {
			us[i].Unit = unit
		}
		seen := q.f.recall(d.ID, len(ls), now)
		even(ls, d.Rates, q.f.c, seen, now)
		b.Draws = append(b.Draws, store.Draw{Key: d.ID, Limits: ls, Units: us, Seen: seen})
	}
	return b
}

// limitsOf returns the limits of a key as the store keeps them, of q's units.
func (q *queue) limitsOf(k Key, now time.Time) []store.Limit {
	ls, units := storeLimits(k.Rates, q.f.c, now)
	for i := range ls {
		ls[i].Unit = slices.Index(q.units, units[ls[i].Unit])
	}
	return append(ls, flightLimits(k, q.flight.unit)...)
}

// batch puts the costs of the first waiters into b: of at least one, and of as many as the
// store probably has room for. It returns their number.
func (q *queue) batch(b *store.Booking) int {
	n := 0
	all, next := make([]int64, len(q.units)), make([]int64, len(q.units))
	for n < len(q.waiting) && n < mostInBatch {
		for i, c := range q.waiting[n].cost {
			next[i] = all[i] + c
		}
		if n > 0 && !holds(b, next) {
			break
		}
		all, next = next, all
		n++
	}
	setCosts(b, q.waiting[0].cost, all)
	return n
}

// setCosts sets the costs of b: of its first request, and of all of them.
func setCosts(b *store.Booking, first, all []int64) {
	for _, d := range b.Draws {
		for i := range d.Units {
			d.Units[i].First, d.Units[i].All = first[i], all[i]
		}
	}
}

// holds guesses whether b has room for units at once.
func holds(b *store.Booking, units []int64) bool {
	for _, d := range b.Draws {
		for i, l := range d.Limits {
			if float64(units[l.Unit]) > d.Seen.Room(i, l) {
				return false
			}
		}
	}
	return true
}

// back returns a batch to the head of the queue, without those that gave up. It does not
// change the slice.
func (q *queue) back(batch []*waiter) {
	batch = slices.DeleteFunc(slices.Clone(batch), func(w *waiter) bool { return w.gone })
	q.waiting = append(batch, q.waiting...)
	for _, w := range batch {
		q.watch(w)
	}
}

// answered grants or refuses the requests of a call, as the store answered.
func (q *queue) answered(call *ride, r store.Booked) {
	now, batch := time.Now(), call.batch
	b := newBatch(q, call.booking, r, call.sent)
	if tallySpent(call.booking, r) {
		q.back(batch)
		q.short = false
		q.refuseAll(Spent)
		return
	}
	q.flight.heard(q, call.booking, r, now)
	if units := b.charged(); q.flight.over && !isZero(units) { // the window became smaller meanwhile
		b.refund(units, b.place)
		q.awaitPlace(batch, now)
		return
	}
	switch r.Outcome {
	case store.BookedAll:
		q.short = call.alone && call.extra == 0
		for i, w := range batch {
			q.grant(w, b, now, q.after(batch[i+1:])...)
		}
		q.lease.begin(q, b, batch[0].cost, call.extra)
		q.flight.yield(q, now)
	case store.BookedOne:
		q.short = true
		q.notBefore = q.turn.served(now, r.Wait, q.late.ahead(), q.f.guard.tripTime())
		q.back(batch[1:])
		q.grant(batch[0], b, now.Add(r.Wait))
		q.flight.yield(q, now)
	case store.Impossible:
		q.back(batch[1:])
		q.refuse(batch[0], &Refusal{Name: q.at(r.Draw).Name, Unit: b.unit(r), Reason: NeverFits})
	default:
		q.turnedDown(batch, b, r, now)
	}
}

// turnedDown lets those of b wait again, of which the store booked nothing.
func (q *queue) turnedDown(ws []*waiter, b *batch, r store.Booked, now time.Time) {
	if flightShort(b.booking, r) {
		q.awaitPlace(ws, now)
		return
	}
	q.short = true
	q.notBefore = q.turn.refused(now, r.Wait, q.late.ahead(), begins(b.booking, r))
	q.refused = shortage{cost: ws[0].cost, until: now.Add(r.Wait), draw: r.Draw, limit: r.Limit, unit: b.unit(r)}
	if r.Limit == store.ByGuess {
		q.refused.guess = r.Wait - r.Keys[r.Draw].Paused
	}
	q.back(ws)
	q.dropLate(now)
}

// begins reports whether a window by the store's clock begins when the wait of r ends.
func begins(b store.Booking, r store.Booked) bool {
	return slices.ContainsFunc(b.Draws, func(d store.Draw) bool {
		return slices.ContainsFunc(d.Limits, func(l store.Limit) bool {
			return l.Kind == store.CalendarLimit && !isFlight(l) && r.Ready >= l.Ends.UnixMicro()
		})
	})
}

// awaitPlace lets a batch wait again until there may be places for it.
func (q *queue) awaitPlace(batch []*waiter, now time.Time) {
	q.short = true
	q.back(batch)
	q.flight.wait(q, batch[0].cost, now)
}

// dropLate refuses those that cannot wait until refused is over.
func (q *queue) dropLate(now time.Time) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
		if !q.refused.bars(w, now) {
			return false
		}
		q.refuse(w, q.tooLong(w, now, q.refused.until.Sub(now), q.refused))
		return true
	})
}

func (b *batch) unit(r store.Booked) string {
	if r.Draw < 0 || r.Limit < 0 {
		return ""
	}
	d := b.booking.Draws[r.Draw]
	return d.Units[d.Limits[r.Limit].Unit].Unit
}

func (q *queue) at(draw int) Key { return q.keys[max(0, draw)] }

func (q *queue) tooLong(w *waiter, now time.Time, wait time.Duration, why shortage) *Refusal {
	r := &Refusal{Name: q.at(why.draw).Name, Unit: why.unit, Reason: TooLong, Wait: wait, Bound: max(0, w.ends.Sub(now)), ByCaller: w.byCaller}
	if why.draw >= 0 && why.limit < 0 {
		r.Reason = Paused
	}
	return r
}

// force charges units, whether there is room or not. It does not wait for the call.
func (q *queue) force(units []int64) {
	now := time.Now()
	if isZero(units) || !q.f.guard.allows(now) {
		return
	}
	b := q.booking(now)
	b.Force = true
	setCosts(&b, units, units)
	q.f.start(func(ctx context.Context) { q.book(ctx, b, now) })
}

// book makes a call for which no request waits, and remembers what the store said. sent is
// when it began.
func (q *queue) book(ctx context.Context, b store.Booking, sent time.Time) (store.Booked, error) {
	r, err := q.f.store.Book(ctx, b)
	q.f.guard.heard(err, time.Since(sent), false)
	if err == nil {
		q.heard(b, r, sent)
	}
	return r, err
}
