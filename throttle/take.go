package throttle

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/histogram"
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
	needs, over, err := q.nowLocked(e, now, buf, p)
	if over {
		return needs, now, 0, err
	}
	mine := *q // the waiter keeps it; the caller's stays on its stack
	return mine.waitLocked(e, now, needs, p)
}

// nowLocked is takeLocked for what need not wait, or never fits: over says that it is
// one or the other. If not the lock is still held, and what q draws on is returned.
func (q *ask) nowLocked(e *queue.Domain, now instant, buf []queue.Need, p *wish) (needs []queue.Need, over bool, err error) {
	needs = q.scope.needs(buf[:0], q)
	if over = e.Enter(now, needs, &q.Request); over {
		q.counts().grant(now)
		e.Unlock()
		return needs, true, nil
	}
	if a := queue.NeverFits(now, needs); a != nil {
		err = q.refuseLocked(e, now, &queue.Refusal{Reason: queue.Unfit, Account: a})
		return nil, true, err
	}
	if queue.Spared(now, &q.Request, needs, &p.Patience) {
		queue.Charge(now, needs, q.Held)
		q.counts().grant(now)
		e.Unlock()
		return needs, true, nil
	}
	if p.Most < 0 {
		if drawn, ok := e.Overtake(now, &q.Request, needs); ok {
			q.counts().grant(now)
			e.Unlock()
			return drawn, true, nil
		}
	}
	return needs, false, nil
}

// refuseLocked counts a refusal, gives the lock up and returns the error.
func (q *ask) refuseLocked(e *queue.Domain, now instant, r *queue.Refusal) error {
	defer e.Unlock()
	err := q.refused(r)
	q.counts().refuse(now, err.Reason)
	return err
}

// waitLocked is takeLocked for what has to wait, if that can end in time. q is the
// waiter's from then on.
func (q *ask) waitLocked(e *queue.Domain, now instant, needs []queue.Need, p *wish) ([]queue.Need, instant, time.Duration, error) {
	w, begins, err := q.queueLocked(e, now, needs, p)
	if err != nil {
		return nil, 0, 0, err
	}
	if begins != nil {
		return q.awaitTold(e, w, begins, now, p)
	}
	w.Await(&p.Patience)
	waited, _, err := q.finish(e, w, now, p)
	if err != nil {
		return nil, 0, waited, err
	}
	return w.Needs, w.At, waited, nil
}

// queueLocked begins a wait and gives the lock up. It returns what OnWait is to be told,
// if there is one.
func (q *ask) queueLocked(e *queue.Domain, now instant, needs []queue.Need, p *wish) (w *queue.Waiter, begins *Wait, err error) {
	if q.learn != nil {
		p.Trip = q.learn.slow.Usual()
		if int(q.Group.Waiting) >= p.Queue && q.learn.starts(needs) {
			p.Queue = math.MaxInt
		}
	}
	q.By = q
	w, f, r := e.Queue(now, &q.Request, needs, &p.Patience)
	if r != nil {
		return nil, nil, q.refuseLocked(e, now, r)
	}
	q.counts().more().waited++
	if p.onWait != nil {
		begins = q.expects(now, f, p) // before a change gives the account other words
	}
	e.Unlock()
	return w, begins, nil
}

// expects is what OnWait is told of a wait that begins.
func (q *ask) expects(now instant, f queue.Forecast, p *wish) *Wait {
	w := &Wait{Ctx: p.hook, Key: q.scope.key, Ahead: f.Ahead}
	if w.Ctx == nil {
		w.Ctx = p.Ctx
	}
	if f.At != never {
		w.Expect = f.At.Until(now)
	}
	if f.Account != nil {
		w.Unit, w.Why = f.Account.Label.Unit, f.Account.Reason(now)
	}
	return w
}

// awaitTold waits without the lock until w's wait is over, and tells OnWait.
func (q *ask) awaitTold(e *queue.Domain, w *queue.Waiter, wait *Wait, since instant, p *wish) ([]queue.Need, instant, time.Duration, error) {
	var end queue.Ending
	over := false
	defer func() {
		if !over {
			q.forsake(e, w, end)
		}
	}()
	p.onWait(*wait)
	w.Await(&p.Patience)
	waited, end, err := q.finish(e, w, since, p)
	over = !end.Granted
	wait.Over, wait.Waited, wait.Granted = true, waited, end.Granted
	p.onWait(*wait)
	if over = true; err != nil {
		return nil, 0, waited, err
	}
	return w.Needs, w.At, waited, nil
}

// finish ends w's wait, which began at since. The error is why it brought no grant.
func (q *ask) finish(e *queue.Domain, w *queue.Waiter, since instant, p *wish) (waited time.Duration, end queue.Ending, err error) {
	e = e.Lock()
	defer e.Unlock()
	now := e.Now()
	waited = time.Duration(now - since)
	histogram.Add(&q.counts().more().waits, waited)
	end = e.Finish(now, w, &p.Patience)
	if q.count(now, w.At, end); !end.Granted {
		err = q.outcome(end, p) // in words of now, which a change may replace
	}
	return waited, end, err
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
	return [...]Reason{queue.Late: WaitTooLong, queue.Full: QueueFull, queue.Unfit: NeverFits, queue.Paused: Paused}[r]
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
