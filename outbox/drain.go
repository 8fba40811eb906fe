package outbox

import (
	"context"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// maxSettling is how many entries of a queue may have got their final answer while
// the file does not say so yet. If the process is killed, these are sent again after
// it has started anew. A larger number would allow a queue to get further ahead of a
// slow disk.
const maxSettling = 16

// Drain sends the entries that are pending now, each queue's in the order of
// their ids and up to Config.Concurrency queues at a time, and returns how many
// were delivered. The first entry of a queue that cannot be delivered yet
// (refused by an open circuit, no answer, an answer that says later) ends the
// turn of that queue, whose entries stay in their order; those of other queues
// are still sent. Nothing is sent to a server whose Retry-After, up to an hour,
// is not over; Drain then reports its last answer again. The error is nil if all
// entries were delivered or set aside. Otherwise it is an *Error about the oldest
// one that was not, ctx.Err(), ErrClosed, or what is wrong with the file. Call Drain
// again to go on. Entries are sent at least once, always with the key with which they
// were first sent.
//
// What becomes of an entry, unless Config.Verdict decides otherwise:
//
//   - a 2xx, or a 303: delivered, and removed;
//   - an error, 401, 407, 408, 409, 421, 425, 429 or 5xx: later. The entry
//     stays first of its queue, which waits for Run's next turn or the next
//     Drain, so that order is kept and a server that is down gets one request
//     a turn; an open circuit refuses that one before it is sent;
//   - any other answer: dead, because it would be the same the next time. A
//     redirect is such an answer; only a 307 or 308 to the same host is followed.
//     An entry is also dead if it costs more than its budget can ever hold, if it
//     is older than Config.MaxAge, or if Config.MaxTries answers said "later"
//     (only answers that speak of the entry count, not of load or credentials).
//
// The requests carry ctx's values: a throttle.WithPriority below zero lets live
// requests go first.
//
// Concurrent calls, and a Run, share the work: no queue is sent by two at a time.
func (t *Transport) Drain(ctx context.Context) (delivered int, err error) {
	r := &round{t: t, ended: make(map[*queue]bool)}
	t.mu.Lock()
	for _, q := range t.order {
		r.last = max(r.last, q.pending[len(q.pending)-1].id)
	}
	t.mu.Unlock()
	err = r.run(ctx)
	if err == nil && r.first != nil {
		err = r.first
	}
	return r.delivered, err
}

// round is one call of Drain, or of Run, whose round ends only from outside.
type round struct {
	t     *Transport
	ctx   context.Context
	wake  chan struct{} // holds one: something has changed
	tasks sync.WaitGroup

	last  uint64        // entries up to this id are meant
	every time.Duration // how long Run leaves a queue alone that is stuck; zero: until Wake

	// Guarded by t.mu.
	ended     map[*queue]bool // whose turn is over; nil: it is Run's
	delivered int
	first     *Error // about the oldest entry that was not
	err       error  // what is wrong with the file
	panicked  any
}

// run sends until nothing is left to send, and returns what ended it earlier.
func (r *round) run(ctx context.Context) error {
	t := r.t
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.enter(r); err != nil {
		return err
	}
	defer t.leave(r)
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.closing, cancel)()
	r.ctx = sending
	for r.step() {
	}
	r.tasks.Wait()
	switch {
	case r.panicked != nil:
		panic(r.panicked)
	case r.err != nil:
		return r.err
	case ctx.Err() != nil:
		return ctx.Err()
	case sending.Err() != nil:
		return ErrClosed
	}
	return nil
}

func (t *Transport) enter(r *round) error {
	r.wake = make(chan struct{}, 1)
	if err := t.file.view(func(*bolt.Tx) error { return nil }); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	t.running.Add(1)
	t.rounds[r] = struct{}{}
	return nil
}

func (t *Transport) leave(r *round) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rounds, r)
	t.signal()
	t.running.Done()
}

// signal has each round look again; t.mu is held.
func (t *Transport) signal() {
	for r := range t.rounds {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// step sends one entry, or waits until there may be one to send. It reports
// whether the round goes on.
func (r *round) step() bool {
	f, s, at, open := r.claim()
	if f != nil {
		r.tasks.Go(func() { r.deliver(f, s) })
		return true
	}
	if !open {
		return false
	}
	var tick <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-r.wake:
	case <-tick:
	case <-r.ctx.Done():
	}
	return true
}

// claim takes the next queue whose turn it is and the entry to send, or says
// that there is none: whether there may be later, and at what time if that is
// known.
func (r *round) claim() (f *flight, s slot, at time.Time, open bool) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.ctx.Err() != nil || r.err != nil || r.panicked != nil {
		return nil, s, at, false
	}
	now := time.Now()
	open = r.ended == nil
	var waiting crowd
	for i := range t.order {
		q := t.order[(t.turn+i)%len(t.order)]
		s, ok := q.next()
		if !ok || s.id > r.last || r.ended[q] {
			continue
		}
		if r.spares(q, s, now) {
			continue
		}
		open = true
		ready, when := r.ready(q, s, now)
		switch {
		case !ready:
			at = earlier(at, when)
		case q.flight != nil:
		case !t.place(q):
			waiting.add(t, q)
		default:
			t.turn = (t.turn + i + 1) % len(t.order)
			return t.depart(r.ctx, q, now), s, at, true
		}
	}
	return nil, s, earlier(at, t.makeRoom(waiting, now)), open
}

// spares ends a Drain's turn of a queue whose server has asked to be left alone.
func (r *round) spares(q *queue, s slot, now time.Time) bool {
	if r.ended == nil || !q.until.After(now) || r.t.expired(s, now) {
		return false
	}
	r.end(q, q.asked)
	return true
}

// ready reports whether the round may send, or set aside, the entry of q at s,
// or when it may.
func (r *round) ready(q *queue, s slot, now time.Time) (bool, time.Time) {
	if r.ended != nil || r.t.expired(s, now) {
		return true, time.Time{}
	}
	ok, at := q.due(r.every, r.t.wakes, now)
	if old := r.t.expiry(s).Add(1); !ok && r.t.s.MaxAge > 0 {
		at = earlier(at, old)
	}
	return ok, at
}

// end ends a Drain's turn of q, whose first entry is left because of cause.
func (r *round) end(q *queue, cause *Error) {
	r.ended[q] = true
	if r.first == nil || cause.ID < r.first.ID {
		r.first = cause
	}
}

// earlier is the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
