package fleet

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const (
	mostInBatch = 1000 // requests in one call, so that its size is bounded
)

// queue holds the requests that draw on the same keys until the store has
// booked them. At most two calls are under way, the second one for no fewer
// requests than the first, and more only if the store is far: see farGap. While
// the keys are short each call is for one request, and the next one follows when
// that request may start, see turn. So processes take turns then, however many
// requests wait in each.
type queue struct {
	f      *Fleet
	keys   []Key
	units  []string        // of all keys; costs are in this order
	limits [][]store.Limit // per key; nil: they change with the time of day, or with a Window
	guests atomic.Int32    // requests that are about to enter; it grows under Fleet.mu, and falls under mu

	mu        sync.Mutex
	waiting   []*waiter // in the order in which they go
	calls     int       // under way
	riding    int       // requests that wait for these calls
	short     bool      // the keys had too little room at the last call
	far       bool      // calls take so long that nobody waits for one before its own
	notBefore time.Time // no call is made before
	turn      turn
	refused   shortage
	busy      time.Time   // no call is made before, because the store said that it is busy
	timer     *time.Timer // calls pump
	over      *time.Timer // ends the waits of those whose time is over before their turn comes; nil: not armed
	overAt    time.Time   // when over fires
	lease     lease
	late      lateness
	flight    flight
	gathers   bool           // those that are granted are told when mu has been given up
	granted   []*waiter      // these
	entering  *waiter        // the request that is in enter
	own       *ride          // a call that entering makes on its own goroutine
	slow      bool           // the last such call was cut off
	cutoff    cutoff         // of such calls
	local     []store.Ledger // this process's shares of the rates while the store is gone; nil: there are none
	apart     time.Time      // when local was made
}

// shortage is what the store last refused. A request that asks for as much and cannot
// wait until then is refused without another call.
type shortage struct {
	cost        []int64
	until       time.Time
	draw, limit int
	unit        string
	guess       time.Duration // so much of the wait, at its end, is only guessed
}

// bars reports whether w is refused now because of s: its time is over, or it certainly will
// be before s ends.
func (s *shortage) bars(w *waiter, now time.Time) bool {
	return w.ends.Before(s.sure()) || w.ends.Before(s.until) && !w.ends.After(now)
}

// sure is until when s certainly lasts.
func (s *shortage) sure() time.Time { return s.until.Add(-s.guess) }

type waiter struct {
	priority int
	few      [4]int64 // room for cost
	cost     []int64
	since    time.Time // when it came
	ends     time.Time // its wait must end by then
	byCaller bool      // by the caller's own deadline
	held     bool      // Options.Held
	heard    func()    // Options.Heard
	gone     bool      // it gave up, or was refused
	done     chan struct{}
	own      Grant
	grant    *Grant // nil: none yet; or &own
	refusal  *Refusal
}

func (q *queue) enter(w *waiter) {
	q.mu.Lock()
	now := w.since
	if !q.joins(now) {
		now = time.Now()
	}
	if q.notBefore.After(now) && q.refused.bars(w, now) {
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
	}
	q.guests.Add(-1)
	q.entering = w
	q.pump(now)
	if q.own == nil && w.grant == nil && w.refusal == nil {
		q.watch(w)
	}
	r := q.own
	q.entering, q.own = nil, nil
	q.mu.Unlock()
	if r != nil {
		r.drive()
	}
}

// joins reports whether one who has come at now, or a moment later, can only wait with others. It
// needs no newer time then.
func (q *queue) joins(now time.Time) bool {
	busy := q.calls > 1 || q.calls == 1 && len(q.waiting)+1 < q.riding
	return busy && !q.short && !q.far && q.lease.left == 0 && !q.notBefore.After(now)
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

// give ends w's wait with r unless it has ended.
func (q *queue) give(w *waiter, r *Refusal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(w, r)
	q.pump(time.Now())
}

func (q *queue) end(w *waiter, r *Refusal) {
	if w.grant != nil || w.refusal != nil {
		return
	}
	q.refuse(w, r)
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// watch sets the timer that refuses w when its wait is over, and Deadline later, as a call
// may be under way for it then. If its turn comes before and the wait cannot end in time, it is
// refused then. The timer is never due when it is made; testnet.Wait says why.
func (q *queue) watch(w *waiter) {
	at := w.ends.Add(q.f.c.Deadline)
	if q.over != nil && !at.Before(q.overAt) {
		return
	}
	if d := max(1, time.Until(at)); q.over == nil {
		q.over = time.AfterFunc(d, q.ringOver)
	} else {
		q.over.Reset(d)
	}
	q.overAt = at
}

func (q *queue) ringOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.over = nil
	why, wait := q.refused, max(0, q.refused.until.Sub(now))
	if wait == 0 {
		why = shortage{draw: -1, limit: -1}
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

// grant grants w. after is what the requests of b cost together that come after w.
func (q *queue) grant(w *waiter, b *batch, ready time.Time, after ...int64) {
	if w.gone {
		if b != nil {
			b.refund(w.cost, b.place)
		}
		return
	}
	w.own = Grant{q: q, batch: b, cost: w.cost, after: after, ready: ready}
	if w.grant = &w.own; b != nil {
		w.grant.place = b.place
	}
	if w.held {
		q.late.hold(q, w.grant)
	}
	q.flight.begins(q, w.grant)
	if q.gathers {
		q.granted = append(q.granted, w)
		return
	}
	close(w.done)
}

func (q *queue) refuse(w *waiter, r *Refusal) {
	if !w.gone {
		w.refusal, w.gone = r, true
		close(w.done)
	}
}

// pump does what can be done now and sets the timer for what cannot. q.mu is held.
func (q *queue) pump(now time.Time) {
	for len(q.waiting) > 0 {
		if q.lease.serve(q, now) {
			continue
		}
		if q.full() && !q.hurries(now) {
			return
		}
		if q.flight.unit > 0 && q.f.awaits(q) {
			return
		}
		q.flight.hasten(q, now)
		if q.notBefore.After(now) && q.f.guard.now() != Gone {
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
			q.refuseAll(Ended)
		}
	}
	if q.calls == 0 {
		q.still()
	}
}

// full reports whether no call may be made before another one has ended.
func (q *queue) full() bool {
	if q.short {
		return q.calls > q.turn.more
	}
	return q.calls > 1 || q.calls == 1 && len(q.waiting) < q.riding
}

// farGap is which part of Deadline a request waits at most for others' calls to a store that is
// far: one whose calls take more than a third of Deadline. To wait for a call to end and then for
// its own could take twice Deadline there. A smaller part would mean more than eight calls under way.
const farGap = 8

// hurries reports whether a call may be made although others are under way, because the first that
// waits has waited for long enough. If not, it sets the timer for when it will have.
func (q *queue) hurries(now time.Time) bool {
	if q.short || !q.far || q.calls >= mostCalls {
		return false
	}
	wait := q.waiting[0].since.Add(q.f.c.Deadline / farGap).Sub(now)
	if wait > 0 {
		q.arm(wait)
	}
	return wait <= 0
}

// still stops the timers of those that wait.
func (q *queue) still() {
	if q.timer != nil {
		q.timer.Stop()
	}
	if q.over != nil {
		q.over.Stop()
		q.over = nil
	}
}

// idle reports whether nothing would be lost if q were dropped. q.mu is held.
func (q *queue) idle(now time.Time) bool {
	return len(q.waiting) == 0 && q.calls == 0 && len(q.late.open)+len(q.late.late)+len(q.flight.held) == 0 && !q.flight.ending && !q.lease.held(now) && !q.notBefore.After(now) &&
		(q.local == nil || q.f.guard.now() == Up)
}

func (q *queue) arm(d time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.ring)
		return
	}
	q.timer.Reset(d)
}

func (q *queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pump(time.Now())
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lease.end()
	q.late.close(q)
	q.flight.close()
	q.still()
	q.refuseAll(Ended)
}

// refuseAll refuses all that wait.
func (q *queue) refuseAll(why Reason) {
	for _, w := range q.waiting {
		q.refuse(w, &Refusal{Name: q.at(0).Name, Reason: why})
	}
	q.waiting = nil
}
