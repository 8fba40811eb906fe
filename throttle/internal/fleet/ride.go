package fleet

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A ride is a call to the store and the requests that wait for its answer. They
// wait for Deadline; then they return to the queue, which goes on without the store.
// The call itself goes on for as long as patience. To cancel it would close its connection,
// the next call would have to make another, and what the call booked would stay booked. If an
// answer comes so late, what it booked is given back.
//
// If only one request waits, and the store is known to be quick, the request makes the call on
// its own goroutine: to hand it to another goroutine and back takes half as long again. Such a
// call is cancelled if the store is slow for once, and is then made anew.
type ride struct {
	q       *queue
	batch   []*waiter
	booking store.Booking
	sent    time.Time
	extra   int64           // requests for which a lease is booked, too
	alone   bool            // others waited, for which there was probably no room
	told    []*move         // what the store is told by the call
	over    *time.Timer     // calls leave at Deadline; nil: the request makes the call itself, with cut
	cut     context.Context // see over

	// Guarded by the queue's lock:
	answered bool // the answer came before Deadline
	left     bool // the requests have stopped waiting before it came
}

// send makes a call for the head of the queue, and for as many others as probably fit. It
// returns false after Close.
func (q *queue) send(now time.Time) bool {
	b := q.booking(now)
	n := q.batch(&b)
	r := &ride{q: q, batch: slices.Clone(q.waiting[:n]), sent: now, alone: n == 1 && len(q.waiting) > 1}
	r.extra = q.lease.extend(q, &b, n)
	b.MaxWait = min(q.late.ahead(), max(0, r.batch[0].ends.Sub(now)))
	r.told = q.late.tell(&b, now, -1)
	r.booking = b
	if q.alike(r) {
		q.own, r.cut = r, q.cutoff.at(q.f, now)
	} else {
		r.over = time.AfterFunc(q.f.c.Deadline, r.leave)
		if !q.f.start(r.run) {
			r.over.Stop()
			q.late.heard(q, r.told, now, store.Booked{}, nil)
			return false
		}
	}
	q.waiting = q.waiting[n:]
	q.calls++
	q.riding += n
	return true
}

// quickly is how long a request waits at most for a call that it makes itself, even if its
// caller gives up meanwhile.
const quickly = 50 * time.Millisecond

// alike reports whether the request that enters may make the call itself.
func (q *queue) alike(r *ride) bool {
	w := q.entering
	return w != nil && !q.slow && r.extra == 0 && len(r.batch) == 1 && r.batch[0] == w && q.calls == 0 &&
		w.ends.Sub(r.sent) > quickly && q.f.guard.quick() && q.f.hold()
}

// A cutoff cancels calls that requests make themselves, after quickly or Deadline, or an
// eighth of that earlier. It is earlier because calls that follow one another share a timer: a
// new timer for each would wake another thread of the process.
type cutoff struct {
	ctx  context.Context
	stop context.CancelFunc
	ends time.Time
}

func (c *cutoff) at(f *Fleet, sent time.Time) context.Context {
	limit := f.quickly()
	if c.ends.Sub(sent) < limit-limit/8 || c.ctx.Err() != nil {
		if c.stop != nil {
			c.stop()
		}
		c.ends = sent.Add(limit)
		c.ctx, c.stop = context.WithDeadline(f.ctx, c.ends)
	}
	return c.ctx
}

func (f *Fleet) quickly() time.Duration { return min(quickly, f.c.Deadline) }

// drive makes the call on the goroutine of the request that waits for it.
func (r *ride) drive() {
	q := r.q
	defer q.f.calls.Done()
	booked, err := q.f.store.Book(r.cut, r.booking)
	now := time.Now()
	if err == nil {
		q.repay(r.cut, r.sent)
	}
	ends, _ := r.cut.Deadline()
	cut := err != nil && !now.Before(ends)
	if !cut || q.f.quickly() == q.f.c.Deadline {
		q.f.guard.heard(err, now.Sub(r.sent), false)
	}
	defer r.passOn(booked, err) // without the lock
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slow = cut
	r.heard(booked, err)
}

func (r *ride) run(ctx context.Context) {
	q := r.q
	booked, err := q.f.store.Book(ctx, r.booking)
	q.mu.Lock()
	if r.left {
		q.mu.Unlock()
		r.tooLate(ctx, booked, err)
		return
	}
	r.answered = true
	q.mu.Unlock()
	r.over.Stop()
	if err == nil {
		q.repay(ctx, r.sent)
	}
	q.f.guard.heard(err, time.Since(r.sent), false)
	defer r.passOn(booked, err) // without the lock
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slow = q.slow && err != nil
	r.heard(booked, err)
}

// passOn lets it be known that the store was heard, if it has no room for the requests now. Those
// that lack places ask too often for that.
func (r *ride) passOn(booked store.Booked, err error) {
	if w := r.batch[0]; w.heard != nil && err == nil && booked.Outcome == store.Refused && !flightShort(r.booking, booked) {
		w.heard()
	}
}

// heard passes on what the store said, and pumps the queue. q.mu is held.
func (r *ride) heard(booked store.Booked, err error) {
	q := r.q
	if isBusy(err) {
		q.busy = time.Now().Add(guardFirst)
	}
	if err != nil {
		q.back(r.batch)
	} else {
		q.heard(r.booking, booked, r.sent)
		if q.gathers = len(r.batch) > 1; q.gathers {
			q.granted = make([]*waiter, 0, len(r.batch))
		}
		q.answered(r, booked)
		q.gathers = false
	}
	q.late.heard(q, r.told, r.sent, booked, err)
	if len(r.batch) > 1 {
		r.rejoin()
	}
	r.ends()
	q.pump(time.Now())
}

// rejoin tells those that were granted, and lets callers that ask again at once join the next
// batch: it goes on when no more come, or as many wait as were served. q.mu is held, but given up
// meanwhile. To wake many under the lock would only let them wait for it.
func (r *ride) rejoin() {
	q := r.q
	granted := q.granted
	q.granted = nil
	for n := -1; n < len(q.waiting) && n < len(r.batch); {
		n = len(q.waiting)
		q.mu.Unlock()
		for _, w := range granted {
			close(w.done)
		}
		granted = nil
		runtime.Gosched()
		q.mu.Lock()
	}
}

// ends notes that the call does not count any more. q.mu is held.
func (r *ride) ends() {
	r.q.calls--
	r.q.riding -= len(r.batch)
	r.q.far = r.q.f.guard.far()
}

// leave returns the requests to the queue, without the answer.
func (r *ride) leave() {
	q := r.q
	q.mu.Lock()
	if r.answered {
		q.mu.Unlock()
		return
	}
	r.left = true
	q.f.calls.Add(1) // run has not ended, so Close still waits
	defer q.f.calls.Done()
	q.back(r.batch)
	r.ends()
	report := q.f.guard.late(r.sent)
	q.pump(time.Now())
	q.mu.Unlock()
	report()
}

// tooLate gives back what a call booked whose answer nobody waits for.
func (r *ride) tooLate(ctx context.Context, booked store.Booked, err error) {
	q := r.q
	q.f.guard.ended(err)
	q.mu.Lock()
	q.late.heard(q, r.told, r.sent, booked, err)
	q.mu.Unlock()
	if err != nil {
		return
	}
	q.heard(r.booking, booked, r.sent)
	b := newBatch(q, r.booking, booked, r.sent)
	if units := b.charged(); !isZero(units) {
		b.giveBack(ctx, units, b.place)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pump(time.Now())
}

// probe books nothing from a store that is gone, to see whether it answers. No request waits
// for it. If the answer takes longer than requests wait, the reason may be a new connection, so
// the store is asked once more.
func (q *queue) probe(now time.Time) {
	b := q.booking(now)
	ok := q.f.start(func(ctx context.Context) {
		var took time.Duration
		var err error
		for range 2 {
			begin := time.Now()
			var r store.Booked
			r, err = q.f.store.Book(ctx, b)
			took = time.Since(begin)
			if err != nil {
				break
			}
			q.heard(b, r, begin)
			if took <= q.f.c.Deadline {
				if q.f.guard.steady(time.Now()) {
					q.repay(ctx, time.Now())
				}
				break
			}
		}
		q.f.guard.heard(err, took, true)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.pump(time.Now())
	})
	if !ok {
		q.f.guard.abandon()
	}
}
