package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A wish is how long a request may wait, and who is told.
type wish struct {
	queue.Patience
	onWait func(Wait)
	hook   context.Context // what onWait is told; nil: that of patience
}

// errCanceled is what a request's own Cancel channel ends it with.
var errCanceled = errors.New("throttle: request canceled while it waited")

// takeLocked grants q, after a wait if need be. The lock is held, and given up.
// The draws it returns are those that were charged, at the instant returned; they
// stand in buf if there is room.
func (q *ask) takeLocked(e *queue.Domain, now instant, buf []queue.Need, p *wish) ([]queue.Need, instant, time.Duration, error) {
	draws := q.scope.draws(buf[:0], q)
	if e.Enter(now, draws, &q.Request) {
		q.counts().grant(now)
		e.Unlock()
		return draws, now, 0, nil
	}
	var r *queue.Refusal
	var w *queue.Waiter
	var f queue.Forecast
	if a := queue.NeverFits(now, draws); a != nil {
		r = &queue.Refusal{Reason: queue.Unfit, Account: a}
	} else if p.Most < 0 {
		if drawn, ok := e.Overtake(now, &q.Request, draws); ok {
			q.counts().grant(now)
			e.Unlock()
			return drawn, now, 0, nil
		}
	}
	if r == nil {
		if q.learn != nil {
			p.Trip = q.learn.slow.Usual()
		}
		mine := *q // the waiter keeps it; the caller's stays on its stack
		mine.By = &mine
		w, f, r = e.Queue(now, &mine.Request, draws, &p.Patience)
		q = &mine
	}
	if r != nil {
		err := q.refused(r)
		q.counts().refuse(now, err.Reason)
		e.Unlock()
		return nil, 0, 0, err
	}
	q.counts().more().waited++
	begins := q.expects(now, f, p) // before a change gives the account other words
	e.Unlock()
	return q.await(e, w, begins, now, p)
}

// expects is what OnWait is told of a wait that begins.
func (q *ask) expects(now instant, f queue.Forecast, p *wish) Wait {
	w := Wait{Ctx: p.hook, Key: q.scope.key, Ahead: f.Ahead, Why: f.Why}
	if w.Ctx == nil {
		w.Ctx = p.Ctx
	}
	if f.At != never {
		w.Expect = f.At.Until(now)
	}
	if f.Account != nil {
		w.Unit = f.Account.Label.Unit
	}
	return w
}

// await waits without the lock until w's wait is over.
func (q *ask) await(e *queue.Domain, w *queue.Waiter, wait Wait, since instant, p *wish) ([]queue.Need, instant, time.Duration, error) {
	var end queue.Ending
	over := false
	if p.onWait != nil {
		defer func() {
			if !over {
				q.forsake(e, w, end)
			}
		}()
		p.onWait(wait)
	}
	w.Await(&p.Patience)
	e = e.Lock()
	now := e.Now()
	waited := time.Duration(now - since)
	add(&q.counts().more().waits, waited)
	end = e.Finish(now, w, &p.Patience)
	q.count(now, w.At, end)
	var err error // in words of now, which a change may replace
	if !end.Granted {
		err = q.outcome(end, p)
	}
	e.Unlock()
	over = !end.Granted
	if p.onWait != nil {
		wait.Over, wait.Waited, wait.Granted = true, waited, end.Granted
		p.onWait(wait)
	}
	if over = true; err != nil {
		return nil, 0, waited, err
	}
	return w.Needs, w.At, waited, nil
}

// count counts a wait that ended at now; it was granted at at.
func (q *ask) count(now, at instant, end queue.Ending) {
	c := q.counts()
	switch {
	case end.Granted:
		c.grant(at)
	case end.Refused != nil:
		c.refuse(now, reasonOf(end.Refused.Reason))
	default:
		c.more().cancelled++
		if end.Late != nil { // its deadline passed, which counts as giving up
			c.turnAway(now)
		}
	}
}

// outcome is the error of a wait that brought no grant.
func (q *ask) outcome(end queue.Ending, p *wish) error {
	switch {
	case end.Late != nil:
		return q.refused(end.Late)
	case p.Ctx.Err() != nil:
		return context.Cause(p.Ctx)
	case end.Refused != nil:
		return q.refused(end.Refused)
	}
	return errCanceled
}

// forsake ends the wait of w, whose hook panicked; its end may be known already.
func (q *ask) forsake(e *queue.Domain, w *queue.Waiter, end queue.Ending) {
	e = e.Lock()
	defer e.Unlock()
	if end.Granted {
		q.counts().granted--
	}
	now := e.Now()
	q.count(now, 0, e.Abandon(now, w))
}

// reasonOf is what people are told of a refusal.
func reasonOf(r queue.Reason) Reason {
	switch r {
	case queue.Full:
		return QueueFull
	case queue.Unfit:
		return NeverFits
	case queue.Paused:
		return Paused
	}
	return WaitTooLong
}

// refused is the error that r is.
func (q *ask) refused(r *queue.Refusal) *Error {
	err := &Error{Key: q.scope.key, RetryAfter: r.Wait, Reason: reasonOf(r.Reason), deadline: r.Deadline, bound: r.Bound}
	if a := r.Account; a != nil {
		err.Unit, err.detail, err.group = a.Label.Unit, a.Label.Text, a.Group
	}
	if r.Why != "" {
		err.detail = r.Why
	}
	return err
}
