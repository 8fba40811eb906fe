package fleet

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A ride is a call to the store and the requests that wait for its answer. They
// wait for Deadline; then they are waiting again, and go on without the store.
// The call itself is left alone for as long as patience: to cut it off would
// cost its connection, and the next call the time to make another, and what it
// charged. An answer that comes so late is given back.
//
// One that waits for itself alone makes the call itself if the store is known to be
// quick: to hand it to another goroutine and back takes half as long again. It does
// cut it off if the store is slow all of a sudden; then the call is made anew.
type ride struct {
	q       *queue
	batch   []*waiter
	booking store.Booking
	sent    time.Time
	extra   int64 // leased
	told    []*move
	over    *time.Timer // at Deadline; nil: the one request makes the call itself, until cut ends
	cut     context.Context

	// under the queue's lock
	answered bool // before Deadline; or else
	left     bool // nobody waits for it any more
}

// send books the head of the queue, and with it as many as are thought to fit.
func (q *queue) send(now time.Time) bool {
	b := q.booking(now)
	n := q.batch(&b)
	r := &ride{q: q, batch: slices.Clone(q.waiting[:n]), sent: now}
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

// quickly is how long a request that makes its own call waits for it, also if its
// caller leaves meanwhile.
const quickly = 50 * time.Millisecond

// alike reports whether the one that enters may make the call itself.
func (q *queue) alike(r *ride) bool {
	w := q.entering
	return w != nil && !q.slow && r.extra == 0 && len(r.batch) == 1 && r.batch[0] == w && q.calls == 0 &&
		w.ends.Sub(r.sent) > quickly && q.f.guard.quick() && q.f.hold()
}

// A cutoff ends calls that requests make themselves, quickly or Deadline after they
// are sent, or an eighth of that earlier: calls that follow one another share a
// timer, as each new one would wake another thread of the process.
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
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slow = q.slow && err != nil
	r.heard(booked, err)
}

// heard takes note of what the store said, and goes on. q.mu is held.
func (r *ride) heard(booked store.Booked, err error) {
	q := r.q
	if isBusy(err) {
		q.busy = time.Now().Add(guardFirst)
	}
	if err != nil {
		q.back(r.batch)
	} else {
		q.heard(r.booking, booked)
		q.answered(r.batch, r.booking, booked, r.sent, r.extra)
	}
	q.late.heard(q, r.told, r.sent, booked, err)
	if len(r.batch) > 1 {
		q.mu.Unlock()
		runtime.Gosched() // who goes on and asks again rides with those that wait
		q.mu.Lock()
	}
	r.ends()
	q.pump(time.Now())
}

// ends makes room for another. q.mu is held.
func (r *ride) ends() {
	r.q.calls--
	r.q.riding -= len(r.batch)
}

// leave lets those that wait go on without the answer.
func (r *ride) leave() {
	q := r.q
	q.mu.Lock()
	if r.answered {
		q.mu.Unlock()
		return
	}
	r.left = true
	q.f.calls.Add(1) // run has not ended: nobody has waited in vain
	defer q.f.calls.Done()
	q.back(r.batch)
	r.ends()
	report := q.f.guard.late(r.sent)
	q.pump(time.Now())
	q.mu.Unlock()
	report()
}

// tooLate takes note of an answer that nobody waits for.
func (r *ride) tooLate(ctx context.Context, booked store.Booked, err error) {
	q := r.q
	q.f.guard.ended(err)
	q.mu.Lock()
	q.late.heard(q, r.told, r.sent, booked, err)
	q.mu.Unlock()
	if err != nil {
		return
	}
	q.heard(r.booking, booked)
	b := newBatch(q, r.booking, booked, r.sent)
	if units := b.charged(); !isZero(units) {
		b.giveBack(ctx, units, b.place)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pump(time.Now())
}

// probe asks a store that is gone for nothing. No request waits for it. If the
// answer takes longer than requests wait, that may be the time that a new
// connection takes: it is asked once more.
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
			q.heard(b, r)
			if took <= q.f.c.Deadline {
				q.repay(ctx, time.Now())
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
