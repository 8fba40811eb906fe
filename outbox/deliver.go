package outbox

import (
	"fmt"
	"time"
)

// deliver sends one entry and writes down what became of it.
func (r *round) deliver(f *flight, s slot) {
	t, q := r.t, f.queue
	whole := false
	defer func() {
		p := recover()
		if whole {
			return
		}
		if p == nil { // runtime.Goexit
			p = "outbox: the base or a hook has ended its goroutine"
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		r.panicked = p
		t.signal()
	}()
	if p, v, cause := r.try(f, s); p != nil {
		behind, err := t.settle(p, v, cause)
		st := r.settled(q, p, v, cause, err)
		if v == Later && t.s.OnStuck != nil {
			t.s.OnStuck(st)
		}
		if !behind.IsZero() && t.s.OnDrained != nil {
			t.s.OnDrained(Drained{Ctx: r.ctx, Queue: q.name, Since: behind})
		}
	}
	whole = true
}

// try sends an entry and gives its place back, whatever happens. The parcel is
// nil if nothing was learnt about the entry.
func (r *round) try(f *flight, s slot) (p *parcel, v Verdict, cause *Error) {
	t := r.t
	sent, over := false, false
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.vacate(f)
		if over {
			r.note(f, s, sent, v, cause)
		}
		t.signal()
	}()
	p, err := t.parcel(s)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.err = err
		return nil, v, nil
	}
	switch {
	case p == nil: // discarded
		return nil, v, nil
	case t.expired(s, time.Now()):
		v, cause = Dead, p.failed(0, fmt.Errorf("older than %v", t.s.MaxAge))
	default:
		sent = true
		v, cause = t.send(f.ctx, p)
		if r.ctx.Err() != nil && cause != nil && cause.Err != nil {
			return nil, v, nil // it was ended, and says nothing about the entry
		}
		if f.ctx.Err() != nil && v == Later && cause.Err != nil {
			cause = p.failed(0, moved(f.ends.Sub(f.begun)))
		}
	}
	over = true
	return p, v, cause
}

// note has the queue know what became of its entry; t.mu is held.
func (r *round) note(f *flight, s slot, sent bool, v Verdict, cause *Error) {
	q := f.queue
	if sent {
		q.last = silent
		if cause == nil || cause.Status != 0 {
			q.last, q.took = answered, time.Since(f.begun)
		}
	}
	if v != Later {
		q.settled = append(q.settled, s.id)
		r.t.settling++
		if sent {
			q.moves()
		}
		return
	}
	q.stuck(f.wakes, cause)
	if r.ended != nil && !q.moved {
		r.end(q, cause)
	}
}

// settled counts what the file now says of a parcel, or err says that it does
// not. It returns what OnStuck is told.
func (r *round) settled(q *queue, p *parcel, v Verdict, cause *Error, err error) Stuck {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if v != Later {
		t.settling--
		q.unsettle(p.id)
	}
	switch {
	case err != nil:
		r.err = err
	case v == Delivered:
		r.delivered++
	}
	t.signal()
	return Stuck{Ctx: r.ctx, Queue: q.name, Entry: p.Entry, Err: cause, Since: q.since, Tries: q.tries, Pending: len(q.pending)}
}
