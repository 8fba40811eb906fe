package queue

import (
	"context"
	"errors"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Patience is how long a request may wait.
type Patience struct {
	Ctx    context.Context
	Cancel <-chan struct{} // ends the wait as well; nil: nothing
	Most   time.Duration   // negative: not at all
	Full   time.Duration   // what most was before earlier waits; for refusals
	Trip   time.Duration   // how long the answer will take, as far as is known: the context must not end before it
	Queue  int             // waiting requests of a group, at most
}

// A Forecast is what a request is told that begins to wait.
type Forecast struct {
	At      meter.Instant // when it will go, about; Never: nobody knows
	Account *Account      // that it waits for most; nil: only for its turn
	Why     string        // in words
	Ahead   int           // requests that wait for the same
}

// Queue lets q wait if that can end in time. q is the waiter's then; needs are its
// needs as of now.
func (e *Domain) Queue(now meter.Instant, q *Request, needs []Need, p *Patience) (*Waiter, Forecast, *Refusal) {
	t, a := Estimate(now, q, needs)
	if r := TooLate(now, t, a, q, needs, p); r != nil {
		return nil, Forecast{}, r
	}
	expires, deadline := p.ends(now)
	if int(q.Group.Waiting) >= p.Queue {
		r := q.refusal(now, t, a, meter.Never, needs)
		r.Reason = Full
		return nil, Forecast{}, r
	}
	f := Forecast{At: t, Account: a}
	if a != nil {
		f.Ahead, f.Why = a.Queued(), a.Reason(now)
	}
	w := newWaiter(q, needs)
	w.Since, w.expires, w.allowed, w.deadline = now, expires, p.Full, deadline
	if p.Trip > 0 && deadline < expires { // not when it is over, but while an answer can still come
		w.expires, w.allowed = deadline, deadline.Until(now)
	}
	e.list(now, w)
	e.try(now, w)
	e.Run(now)
	return w, f, nil
}

// ends is when p ends a wait, and when its context does.
func (p *Patience) ends(now meter.Instant) (expires, deadline meter.Instant) {
	deadline = meter.Never
	if d, ok := p.Ctx.Deadline(); ok {
		deadline = max(now, now.Add(time.Until(d)-p.Trip))
	}
	return now.Add(p.Most), deadline
}

// TooLate refuses a wait that certainly ends later than p allows. If p allows
// none any more, it refuses one for a until t, however that is known.
func TooLate(now, t meter.Instant, a *Account, q *Request, needs []Need, p *Patience) *Refusal {
	if p.Most < 0 {
		return q.refusal(now, Behind(now, t, needs), a, now, needs)
	}
	expires, deadline := p.ends(now)
	end := min(expires, deadline)
	if end > now {
		t, a = certain(now, q, needs, true)
	}
	if t <= end {
		return nil
	}
	r := q.refusal(now, t, a, end, needs)
	r.Deadline = deadline <= expires
	r.Bound = p.Full
	if r.Deadline {
		r.Bound = deadline.Until(now)
	}
	return r
}

// Reason is what one waits for at a, in words.
func (a *Account) Reason(now meter.Instant) string {
	if m, ok := a.Meter.(interface {
		Words(now meter.Instant) string
	}); ok {
		return m.Words(now)
	}
	switch {
	case a.Paused > now:
		return a.Why()
	case a.Label.Unit == "":
		return a.Label.Text + ", all taken"
	}
	return a.Label.Text + " is spent"
}

// Await returns when w's wait is over or its request is gone. The lock is not
// held. finish has to follow.
func (w *Waiter) Await(p *Patience) {
	select {
	case <-w.ready:
	case <-p.Ctx.Done():
	case <-p.Cancel:
	}
}

// An Ending is how a wait ended. If it has neither a grant nor a refusal, the
// request was given up.
type Ending struct {
	Granted bool
	Refused *Refusal // by the queue
	Late    *Refusal // the deadline passed while it waited; it was given up then
}

// Finish ends w's wait. If its request is gone that costs nothing.
func (e *Domain) Finish(now meter.Instant, w *Waiter, p *Patience) (end Ending) {
	if err := p.Ctx.Err(); err != nil { // both may be ready
		if w.deadline != meter.Never && errors.Is(err, context.DeadlineExceeded) {
			a, t := w.binding(now)
			end.Late = w.late(now, a, t)
			end.Late.Deadline, end.Late.Bound = true, 0
		}
		end.Refused = e.Abandon(now, w).Refused
		return end
	}
	if w.granted {
		return Ending{Granted: true}
	}
	return e.Abandon(now, w)
}

// Abandon ends w's wait whatever came of it: its request is gone. A grant is given
// back.
func (e *Domain) Abandon(now meter.Instant, w *Waiter) Ending {
	end := Ending{Refused: w.refused}
	switch {
	case w.granted:
		e.Return(now, &Permit{Needs: w.Needs, Granted: w.At, Answered: w.answeredAt(w.At)})
		w.granted = false
	case w.refused == nil:
		e.leave(w)
		w.refused = &Refusal{Reason: Late}
		e.Run(now)
	}
	return end
}
