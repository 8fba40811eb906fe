package queue

import (
	"context"
	"errors"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Patience is how long a request may wait.
type Patience struct {
	Ctx    context.Context // ends the wait, too; its deadline counts
	Cancel <-chan struct{} // ends the wait, too; nil: it does not
	Most   time.Duration   // the longest wait; negative: none
	Full   time.Duration   // what Most was before earlier waits of the request; refusals name it
	Trip   time.Duration   // how long the answer will take, if known: the request must go so long before the context's deadline
	Queue  int             // how many requests of a group may wait
	Spare  bool            // nothing is lost if it is refused
}

// A Forecast says what a request waits for, when it begins to.
type Forecast struct {
	At      meter.Instant // about when it will go; Never: not known
	Account *Account      // the account that lets it wait longest; nil: it only waits for its turn. Its Reason says why
	Ahead   int           // how many requests wait for this account
}

// Queue lets q wait, unless it certainly cannot be granted in time or too many wait; then it
// returns a Refusal. needs are the needs of q at now. The caller must not use q afterwards: it
// belongs to the Waiter.
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
		f.Ahead = a.Queued()
	}
	w := newWaiter(q, needs)
	w.Since, w.expires, w.allowed, w.deadline = now, expires, p.Full, deadline
	if p.Trip > 0 && deadline < expires { // it is refused while an answer could still come in time, not when the context has ended
		w.expires, w.allowed = deadline, deadline.Until(now)
	}
	e.list(now, w)
	e.try(now, w)
	e.Run(now)
	return w, f, nil
}

// ends is when p ends a wait, and when its context does, less Trip.
func (p *Patience) ends(now meter.Instant) (expires, deadline meter.Instant) {
	deadline = meter.Never
	if d, ok := p.Ctx.Deadline(); ok {
		deadline = max(now, now.Add(time.Until(d)-p.Trip))
	}
	return now.Add(p.Most), deadline
}

// TooLate returns a Refusal if a wait certainly ends later than p allows; otherwise nil. If p
// allows no wait at all, it refuses one for a until t even if that is only an estimate.
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

// Reason says in words why a request has to wait for a.
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

// Await returns when w is granted or refused, or when p's context or Cancel ends the wait. The
// caller does not hold the lock, and calls Finish or Abandon afterwards.
func (w *Waiter) Await(p *Patience) {
	select {
	case <-w.ready:
	case <-p.Ctx.Done():
	case <-p.Cancel:
	}
}

// An Ending is how a wait ended. If it was neither granted nor refused, its caller gave up.
type Ending struct {
	Granted bool
	Refused *Refusal // why the queue refused it; nil: it did not
	Late    *Refusal // the context's deadline passed while it waited, for this reason; nil: it did not
}

// Finish ends w's wait after Await. If its caller gave up, a grant is given back.
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

// Abandon ends w's wait because its caller has given up. A grant is given back.
func (e *Domain) Abandon(now meter.Instant, w *Waiter) Ending {
	end := Ending{Refused: w.refused}
	switch {
	case w.granted:
		e.Return(now, &Permit{Needs: w.Needs, Granted: w.At, Answered: w.answeredAt(w.At)})
		w.granted = false
	case !w.over():
		e.leave(w)
		w.forsaken = true
		e.Run(now)
	}
	return end
}
