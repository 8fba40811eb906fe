package throttle

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	fleetBatchMost = 1000        // requests on one call
	fleetAhead     = time.Second // how far a booking reaches; see throttle's promises
)

// fleetQueue holds the requests that draw on the same keys until the store has
// booked them. At most two calls are on their way. While the keys are short it
// is one, for one request, and the next follows when that request may start:
// processes then take turns, however many requests wait in each.
type fleetQueue struct {
	f      *fleet
	name   string
	draws  []fleetDraw
	units  []string // of all draws; costs are in this order
	guests int      // requests about to enter; under fleet.mu

	mu        sync.Mutex
	waiting   []*fleetWaiter
	calls     int
	short     bool
	notBefore time.Time
	timer     *time.Timer
	lease     fleetLease
	local     []Ledger // shares of the rates while the store is gone; nil: not begun
}

type fleetWaiter struct {
	priority int
	cost     []int64
	ends     time.Time // its wait must end by then
	byCaller bool      // by the caller's own deadline
	gone     bool      // gave up
	done     chan struct{}
	grant    *fleetGrant
	err      error
}

func newFleetQueue(f *fleet, name string, draws []fleetDraw) *fleetQueue {
	q := &fleetQueue{f: f, name: name, draws: slices.Clone(draws)}
	q.units = []string{requests}
	for _, d := range draws {
		for _, r := range d.rates {
			if unitIndex(q.units, r.unit()) < 0 {
				q.units = append(q.units, r.unit())
			}
		}
	}
	return q
}

func (q *fleetQueue) vector(c Cost) []int64 {
	v := make([]int64, len(q.units))
	for i, unit := range q.units {
		v[i] = min(c.of(unit), maxAmount/fleetBatchMost/2)
	}
	return v
}

func (q *fleetQueue) enter(w *fleetWaiter) {
	q.mu.Lock()
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].priority < w.priority {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, w)
	q.f.mu.Lock()
	q.guests--
	q.f.mu.Unlock()
	q.pump(time.Now())
	q.mu.Unlock()
}

// give ends w's wait with err unless it has ended.
func (q *fleetQueue) give(w *fleetWaiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.grant != nil || w.err != nil {
		return
	}
	w.err, w.gone = err, true
	close(w.done)
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.pump(time.Now())
}

func (q *fleetQueue) grant(w *fleetWaiter, b *fleetBatch, ready time.Time) {
	if w.gone {
		if b != nil {
			b.refund(w.cost)
		}
		return
	}
	w.grant = &fleetGrant{batch: b, cost: w.cost, ready: ready}
	close(w.done)
}

func (q *fleetQueue) refuse(w *fleetWaiter, err error) {
	if !w.gone {
		w.err, w.gone = err, true
		close(w.done)
	}
}

// pump does what can be done now and sets the timer for what cannot. q.mu is held.
func (q *fleetQueue) pump(now time.Time) {
	for len(q.waiting) > 0 {
		if q.lease.serve(q, now) {
			continue
		}
		if q.calls > 0 && (q.short || q.calls > 1) {
			return
		}
		if q.notBefore.After(now) {
			q.arm(q.notBefore.Sub(now))
			return
		}
		ok, probe, retry := q.f.guard.enter(now)
		if !ok {
			if wait := q.alone(now); wait > 0 {
				q.arm(min(wait, max(retry.Sub(now), time.Millisecond)))
				return
			}
			continue
		}
		if !q.send(now, probe) {
			q.refuseAll()
		}
	}
	if q.calls == 0 {
		if q.timer != nil {
			q.timer.Stop()
		}
	}
}

// idle reports whether nothing is lost with q. q.mu is held.
func (q *fleetQueue) idle(now time.Time) bool {
	return len(q.waiting) == 0 && q.calls == 0 && !q.lease.held(now) && !q.notBefore.After(now) &&
		(q.local == nil || q.f.guard.now() == StoreUp)
}

func (q *fleetQueue) arm(d time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.ring)
		return
	}
	q.timer.Reset(d)
}

func (q *fleetQueue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pump(time.Now())
}

// send books the head of the queue, and with it as many as are thought to fit.
func (q *fleetQueue) send(now time.Time, probe bool) bool {
	b := q.booking(now)
	n := q.batch(&b)
	batch := slices.Clone(q.waiting[:n])
	extra := q.lease.extend(q, &b, n)
	head := batch[0]
	b.MaxWait = min(fleetAhead, max(0, head.ends.Sub(now)))
	ok := q.f.start(func(ctx context.Context) {
		r, err := q.f.store.Book(ctx, b)
		q.f.guard.heard(err, probe)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.calls--
		if err != nil {
			q.back(batch)
		} else {
			q.f.heard(b, r)
			q.local = nil
			q.answered(batch, &fleetBatch{q: q, booking: b, booked: r, sent: now}, extra)
		}
		q.pump(time.Now())
	})
	if ok {
		q.waiting = q.waiting[n:]
		q.calls++
	} else if probe {
		q.f.guard.abandon()
	}
	return ok
}

func (q *fleetQueue) booking(now time.Time) Booking {
	var b Booking
	for _, d := range q.draws {
		ls, units := storeLimits(d.rates, q.f.c, now)
		us := make([]UnitCost, len(q.units))
		for i, unit := range q.units {
			us[i].Unit = unit
		}
		for i := range ls {
			ls[i].Unit = unitIndex(q.units, units[ls[i].Unit])
		}
		b.Draws = append(b.Draws, Draw{Key: d.key, Limits: ls, Units: us, Seen: q.f.recall(d.key, len(ls), now)})
	}
	return b
}

// batch puts the costs of the first waiters into b, as many as fit by what is
// known of the levels, at least one, and returns their number.
func (q *fleetQueue) batch(b *Booking) int {
	n := 0
	all := make([]int64, len(q.units))
	for n < len(q.waiting) && n < fleetBatchMost {
		next := slices.Clone(all)
		for i, c := range q.waiting[n].cost {
			next[i] += c
		}
		if n > 0 && !b.holds(next) {
			break
		}
		all = next
		n++
	}
	b.cost(q.waiting[0].cost, all)
	return n
}

func (b *Booking) cost(first, all []int64) {
	for _, d := range b.Draws {
		for i := range d.Units {
			d.Units[i].First, d.Units[i].All = first[i], all[i]
		}
	}
}

// holds guesses whether units fit at once.
func (b *Booking) holds(units []int64) bool {
	for _, d := range b.Draws {
		for i, l := range d.Limits {
			if float64(units[l.Unit]) > d.Seen.room(i, l) {
				return false
			}
		}
	}
	return true
}

// room is how many units limit i should hold now; all of Size if nothing is known.
func (s Seen) room(i int, l StoreLimit) float64 {
	level := 0.0
	if len(s.Levels) > 0 {
		level = max(0, s.Levels[i])
		if l.Kind == MeterLimit {
			level = max(0, level-l.Rate*s.Age.Seconds())
		}
	}
	return l.Size - level
}

// back returns a batch to the head of the queue, without those who gave up.
func (q *fleetQueue) back(batch []*fleetWaiter) {
	batch = slices.DeleteFunc(batch, func(w *fleetWaiter) bool { return w.gone })
	q.waiting = append(batch, q.waiting...)
}

// answered hands out what the store said.
func (q *fleetQueue) answered(batch []*fleetWaiter, b *fleetBatch, extra int64) {
	now, r := time.Now(), b.booked
	for i := range b.booking.Draws {
		b.given = append(b.given, make([]float64, len(b.booking.Draws[i].Limits)))
	}
	switch r.Outcome {
	case BookedAll:
		q.short = len(batch) == 1 && len(q.waiting) > 0 && extra == 0
		for _, w := range batch {
			q.grant(w, b, now)
		}
		q.lease.begin(q, b, batch[0].cost, extra)
	case BookedOne:
		q.short = true
		q.notBefore = now.Add(r.Wait)
		q.back(batch[1:])
		q.grant(batch[0], b, now.Add(r.Wait))
	case Impossible:
		q.back(batch[1:])
		q.refuse(batch[0], &Error{Key: q.at(r.Draw).name, Unit: b.unit(r), Reason: NeverFits})
	default:
		q.short = true
		q.notBefore = now.Add(min(r.Wait, fleetAhead))
		q.back(batch)
		q.dropLate(now, b)
	}
}

// dropLate tells those who cannot wait that long.
func (q *fleetQueue) dropLate(now time.Time, b *fleetBatch) {
	r := b.booked
	q.waiting = slices.DeleteFunc(q.waiting, func(w *fleetWaiter) bool {
		if !w.ends.Before(now.Add(r.Wait)) {
			return false
		}
		err := q.tooLong(w, now, r.Wait, r.Draw, r.Limit)
		err.Unit = b.unit(r)
		q.refuse(w, err)
		return true
	})
}

func (b *fleetBatch) unit(r Booked) string {
	if r.Draw < 0 || r.Limit < 0 {
		return ""
	}
	d := b.booking.Draws[r.Draw]
	return d.Units[d.Limits[r.Limit].Unit].Unit
}

func (q *fleetQueue) at(draw int) fleetDraw { return q.draws[max(0, draw)] }

func (q *fleetQueue) tooLong(w *fleetWaiter, now time.Time, wait time.Duration, draw, limit int) *Error {
	e := &Error{Key: q.at(draw).name, RetryAfter: wait, Reason: WaitTooLong, deadline: w.byCaller, bound: max(0, w.ends.Sub(now))}
	if draw >= 0 && limit < 0 {
		e.Reason = Paused
	}
	return e
}

// force charges units whatever the level.
func (q *fleetQueue) force(units []int64) {
	now := time.Now()
	if isZero(units) || !q.f.guard.allows(now) {
		return
	}
	b := q.booking(now)
	b.Force = true
	b.cost(units, units)
	q.f.start(func(ctx context.Context) {
		r, err := q.f.store.Book(ctx, b)
		q.f.guard.heard(err, false)
		if err == nil {
			q.f.heard(b, r)
		}
	})
}

func (q *fleetQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lease.end(q)
	if q.timer != nil {
		q.timer.Stop()
	}
	q.refuseAll()
}

// refuseAll refuses everybody.
func (q *fleetQueue) refuseAll() {
	for _, w := range q.waiting {
		q.refuse(w, &Error{Key: q.at(0).name, Reason: StoreDown})
	}
	q.waiting = nil
}
