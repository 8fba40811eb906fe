package throttle

import (
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const (
	fleetBatchMost = 1000 // requests on one call
)

// fleetQueue holds the requests that draw on the same keys until the store has
// booked them. At most two calls are on their way, the second for no fewer
// requests than the first. While the keys are short it is one, for one request,
// and the next follows when that request may start: processes then take turns,
// however many requests wait in each.
type fleetQueue struct {
	f      *fleet
	name   string
	keys   []fleetDraw
	units  []string // of all draws; costs are in this order
	guests int      // requests about to enter; under fleet.mu

	mu        sync.Mutex
	waiting   []*fleetWaiter
	calls     int
	riding    int // requests on them
	short     bool
	notBefore time.Time
	turn      fleetTurn
	refused   fleetRefusal
	busy      time.Time // the store is not asked before
	timer     *time.Timer
	over      *time.Timer // for those whose turn to be told does not come; nil: not armed
	overAt    time.Time
	lease     fleetLease
	late      fleetLate
	local     []store.Ledger // shares of the rates while the store is gone; nil: not begun
}

// fleetRefusal is what the store last refused: who asks for as much and cannot
// wait until then is refused without another call.
type fleetRefusal struct {
	cost        []int64
	until       time.Time
	draw, limit int
	unit        string
}

type fleetWaiter struct {
	priority int
	cost     []int64
	ends     time.Time // its wait must end by then
	byCaller bool      // by the caller's own deadline
	held     bool      // there will be an answer; else units count from the grant
	gone     bool      // gave up
	done     chan struct{}
	grant    *fleetGrant
	err      error
}

func newFleetQueue(f *fleet, name string, draws []fleetDraw) *fleetQueue {
	q := &fleetQueue{f: f, name: name, keys: slices.Clone(draws), late: newFleetLate(draws, f.c, time.Now())}
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

// draws reports whether q draws on the keys in ds as ds says.
func (q *fleetQueue) draws(ds []fleetDraw) bool {
	return slices.EqualFunc(q.keys, ds, func(a, b fleetDraw) bool {
		return a.key == b.key && slices.Equal(a.rates, b.rates)
	})
}

func (q *fleetQueue) vector(c Cost) []int64 {
	v := make([]int64, len(q.units))
	for i, unit := range q.units {
		v[i] = min(c.of(unit), store.MaxAmount/fleetBatchMost/2)
	}
	return v
}

func (q *fleetQueue) enter(w *fleetWaiter) {
	q.mu.Lock()
	now := time.Now()
	if q.notBefore.After(now) && w.ends.Before(q.refused.until) {
		if len(q.waiting) > 0 || covers(w.cost, q.refused.cost) {
			q.refuse(w, q.tooLong(w, now, q.refused.until.Sub(now), q.refused))
		} else {
			q.notBefore = now // it asks for less, and nobody is ahead
		}
	}
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].priority < w.priority {
		i--
	}
	if !w.gone {
		q.waiting = slices.Insert(q.waiting, i, w)
		q.watch(w)
	}
	q.f.mu.Lock()
	q.guests--
	q.f.mu.Unlock()
	q.pump(now)
	q.mu.Unlock()
}

// covers reports whether a asks for at least as much as b of everything.
func covers(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// give ends w's wait with err unless it has ended.
func (q *fleetQueue) give(w *fleetWaiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(w, err)
	q.pump(time.Now())
}

func (q *fleetQueue) end(w *fleetWaiter, err error) {
	if w.grant != nil || w.err != nil {
		return
	}
	q.refuse(w, err)
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// watch sees to it that w is told when its wait is over. It is told before that
// if its turn comes and the wait cannot end in time; a call to the store is
// allowed for, and another one that it may be riding on by then. That may be
// over too: no timer is due when it is made, see testnet.Wait.
func (q *fleetQueue) watch(w *fleetWaiter) {
	at := w.ends.Add(q.f.c.Deadline)
	d := max(1, time.Until(at))
	switch {
	case q.over == nil:
		q.over = time.AfterFunc(d, q.ringOver)
	case at.Before(q.overAt):
		q.over.Reset(d)
	default:
		return
	}
	q.overAt = at
}

func (q *fleetQueue) ringOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.over = nil
	why, wait := q.refused, max(0, q.refused.until.Sub(now))
	if wait == 0 {
		why = fleetRefusal{draw: -1, limit: -1}
	}
	for _, w := range slices.Clone(q.waiting) {
		if w.ends.Add(q.f.c.Deadline).After(now) {
			q.watch(w)
		} else {
			q.end(w, q.tooLong(w, now, wait, why))
		}
	}
	q.pump(now)
}

func (q *fleetQueue) grant(w *fleetWaiter, b *fleetBatch, ready time.Time) {
	if w.gone {
		if b != nil {
			b.refund(w.cost, b.place)
		}
		return
	}
	w.grant = &fleetGrant{batch: b, cost: w.cost, ready: ready}
	if b != nil {
		w.grant.place = b.place
	}
	if w.held {
		q.late.hold(q, w.grant)
	}
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
		if q.calls > 0 && (q.short || q.calls > 1 || len(q.waiting) < q.riding) {
			return
		}
		if q.notBefore.After(now) {
			q.arm(q.notBefore.Sub(now))
			return
		}
		ok, probe, retry := false, false, q.busy
		if !q.busy.After(now) {
			ok, probe, retry = q.f.guard.enter(now)
		}
		if probe {
			q.probe(now)
		}
		if !ok && !q.f.ended() {
			if wait := q.alone(now); wait > 0 {
				q.arm(min(wait, max(retry.Sub(now), time.Millisecond)))
				return
			}
			continue
		}
		if !ok || !q.send(now) {
			q.refuseAll(afterClose)
		}
	}
	if q.calls == 0 {
		q.still()
	}
}

// still stops the timers of those that wait.
func (q *fleetQueue) still() {
	if q.timer != nil {
		q.timer.Stop()
	}
	if q.over != nil {
		q.over.Stop()
		q.over = nil
	}
}

// idle reports whether nothing is lost with q. q.mu is held.
func (q *fleetQueue) idle(now time.Time) bool {
	return len(q.waiting) == 0 && q.calls == 0 && len(q.late.open)+len(q.late.late) == 0 && !q.lease.held(now) && !q.notBefore.After(now) &&
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

func (q *fleetQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lease.end(q)
	q.late.close(q)
	q.still()
	q.refuseAll(afterClose)
}

// afterClose is the detail of a refusal for which no Store is to blame.
const afterClose = "after Close"

// refuseAll refuses everybody.
func (q *fleetQueue) refuseAll(detail string) {
	for _, w := range q.waiting {
		q.refuse(w, &Error{Key: q.at(0).name, Reason: StoreDown, detail: detail})
	}
	q.waiting = nil
}
