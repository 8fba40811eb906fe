package throttle

import (
	"context"
	"errors"
	"time"
)

// patience is how long a request may wait.
type patience struct {
	ctx    context.Context
	cancel <-chan struct{} // http.Request.Cancel; nil: none
	most   time.Duration   // negative: not at all
	full   time.Duration   // what most was before earlier waits; for errors
	trip   time.Duration   // how long the answer will take, as far as is known: a deadline is for that too
	queue  int             // waiting requests of a scope, at most
	onWait func(Wait)
	hook   context.Context // what onWait is told; nil: ctx
}

// take grants q, after a wait if need be. The draws it returns are those that
// were charged, at the instant returned; they stand in buf if there is room.
func (e *engine) take(q *ask, buf []draw, p *patience) ([]draw, instant, time.Duration, error) {
	e.mu.Lock()
	return e.takeLocked(e.now(), q, buf, p)
}

// takeLocked is take with the lock held, which it gives up.
func (e *engine) takeLocked(now instant, q *ask, buf []draw, p *patience) ([]draw, instant, time.Duration, error) {
	draws := q.scope.draws(buf[:0], q)
	if e.enter(now, draws, q) {
		q.counts().grant(now)
		e.mu.Unlock()
		return draws, now, 0, nil
	}
	if d := fits(now, draws); d != nil {
		q.counts().refuse(now, NeverFits)
		e.mu.Unlock()
		return nil, 0, 0, q.error(NeverFits, d.a, 0)
	}
	if p.most < 0 {
		if drawn, ok := e.overtake(now, q, draws); ok {
			e.mu.Unlock()
			return drawn, now, 0, nil
		}
	}
	if q.learn != nil {
		p.trip = q.learn.slow.usual()
	}
	w, wait, err := e.queue(now, q, draws, p)
	if err != nil {
		q.counts().refuse(now, err.Reason)
	}
	e.mu.Unlock()
	if err != nil {
		return nil, 0, 0, err
	}
	return e.await(w, wait, now, p)
}

// queue lets q wait if that can end in time.
func (e *engine) queue(now instant, q *ask, draws []draw, p *patience) (*waiter, Wait, *Error) {
	t, a := e.estimate(now, q, draws)
	if err := e.tooLate(now, t, a, q, draws, p); err != nil {
		return nil, Wait{}, err
	}
	expires, deadline := p.ends(now)
	if q.scope.waiting >= p.queue {
		err := q.refusal(now, t, a, never)
		err.Reason = QueueFull
		return nil, Wait{}, err
	}
	ahead := 0
	if a != nil && a.line != nil {
		ahead = a.line.size()
	}
	w := newWaiter(q, draws)
	w.since, w.expires, w.allowed, w.deadline = now, expires, p.full, deadline
	if p.trip > 0 && deadline < expires { // not when it is over, but while an answer can still come
		w.expires, w.allowed = deadline, deadline.Until(now)
	}
	if w.seq == 0 {
		e.seq++
		w.seq = e.seq
	}
	e.list(now, w)
	q.counts().more().waited++
	wait := Wait{Ctx: p.about(), Key: q.scope.key, Ahead: ahead}
	if t != never {
		wait.Expect = t.Until(now)
	}
	if a != nil {
		wait.Unit, wait.Why = a.terms.unit, a.reason(now)
	}
	e.try(now, w)
	e.run(now)
	return w, wait, nil
}

// about is the context that hooks are told.
func (p *patience) about() context.Context {
	if p.hook != nil {
		return p.hook
	}
	return p.ctx
}

// ends is when p ends a wait, and when its context does.
func (p *patience) ends(now instant) (expires, deadline instant) {
	deadline = never
	if d, ok := p.ctx.Deadline(); ok {
		deadline = max(now, now.Add(time.Until(d)-p.trip))
	}
	return now.Add(p.most), deadline
}

// tooLate refuses a wait that certainly ends later than p allows. If p allows
// none any more, it refuses one for a until t, however that is known.
func (e *engine) tooLate(now, t instant, a *account, q *ask, draws []draw, p *patience) *Error {
	if p.most < 0 {
		return q.refusal(now, behind(now, t, draws), a, now)
	}
	expires, deadline := p.ends(now)
	end := min(expires, deadline)
	if end > now {
		t, a = certain(now, q, draws, true)
	}
	if t <= end {
		return nil
	}
	err := q.refusal(now, t, a, end)
	err.deadline = deadline <= expires
	err.bound = p.full
	if err.deadline {
		err.bound = deadline.Until(now)
	}
	return err
}

// reason is what one waits for at a, in words.
func (a *account) reason(now instant) string {
	if m, ok := a.meter.(interface{ words(now instant) string }); ok {
		return m.words(now)
	}
	switch {
	case a.paused > now:
		return a.why
	case a.terms.unit == "":
		return a.terms.text + ", all taken"
	}
	return a.terms.text + " is spent"
}

// await waits without the lock until w's wait is over.
func (e *engine) await(w *waiter, wait Wait, since instant, p *patience) ([]draw, instant, time.Duration, error) {
	if p.onWait != nil {
		defer e.guard(w)
		p.onWait(wait)
	}
	select {
	case <-w.ready:
	case <-p.ctx.Done():
	case <-p.cancel:
	}
	e.mu.Lock()
	now := e.now()
	waited := time.Duration(now - since)
	add(&w.counts().more().waits, waited)
	err := w.end(now, p)
	if err != nil {
		if _, late := err.(*Error); late && w.err == nil { // its deadline passed, which counts as giving up
			w.counts().turnAway(now)
		}
		e.abandon(now, w)
		w.kept = true
	}
	e.mu.Unlock()
	if p.onWait != nil {
		wait.Over, wait.Waited, wait.Granted = true, waited, err == nil
		p.onWait(wait)
	}
	w.kept = true
	if err != nil {
		return nil, 0, waited, err
	}
	return w.draws, w.at, waited, nil
}

// guard takes w out of everything if a hook panicked.
func (e *engine) guard(w *waiter) {
	if w.kept {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.abandon(e.now(), w)
}

// errCanceled is what a request's own Cancel channel ends it with.
var errCanceled = errors.New("throttle: request canceled while it waited")

// end returns nil if the wait ended with a grant that is still wanted.
func (w *waiter) end(now instant, p *patience) error {
	if err := p.ctx.Err(); err != nil { // both may be ready
		if w.deadline != never && errors.Is(err, context.DeadlineExceeded) {
			a, t := w.binding(now)
			err := w.late(now, a, t)
			err.deadline, err.bound = true, 0
			return err
		}
		return context.Cause(p.ctx)
	}
	if w.err != nil {
		return w.err
	}
	if !w.granted {
		return errCanceled
	}
	return nil
}

// abandon ends the wait of one who has gone: it costs nothing.
func (e *engine) abandon(now instant, w *waiter) {
	c := w.counts()
	switch {
	case w.granted:
		c.granted--
		c.more().cancelled++
		e.back(now, &permit{draws: w.draws, granted: w.at, answered: w.answeredAt(w.at)})
		w.granted = false
	case w.err != nil:
		c.refuse(now, w.err.Reason)
	default:
		c.more().cancelled++
		e.leave(w)
		w.err = w.error(WaitTooLong, nil, 0)
		e.run(now)
	}
}
