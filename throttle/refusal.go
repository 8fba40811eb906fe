package throttle

import "time"

// error makes a refusal about a.
func (q *ask) error(r Reason, a *account, wait time.Duration) *Error {
	err := &Error{Key: q.scope.key, RetryAfter: wait, Reason: r}
	if a != nil {
		err.Unit = a.terms.unit
		err.detail = a.terms.text
	}
	return err
}

// late is the refusal of a waiter that a can grant at t, which is too late.
func (w *waiter) late(now instant, a *account, t instant) *Error {
	end := min(w.expires, w.deadline)
	err := w.refusal(now, t, a, end)
	err.deadline = w.deadline <= w.expires
	err.bound = end.until(now)
	return err
}

// tooLong is the refusal of a waiter whose time is up.
func (w *waiter) tooLong(now instant) *Error {
	a, t := w.binding(now)
	err := w.late(now, a, t)
	err.bound = w.allowed
	return err
}

// binding is the account w waits for longest.
func (w *waiter) binding(now instant) (*account, instant) {
	var a *account
	t := now
	for _, k := range w.claims {
		if u := k.line.a.at(now, k.n); a == nil || u > t {
			a, t = k.line.a, u
		}
	}
	if a == nil {
		a = &w.scope.gate
	}
	return a, t
}

// refusal is that of a wait until t for a, which is later than end. If a pause
// alone would be, that is why.
func (q *ask) refusal(now, t instant, a *account, end instant) *Error {
	if g := &q.scope.gate; a == nil || g.paused > max(now, end) {
		a = g
	}
	if q.host != nil && q.host.gate.paused > max(now, end) {
		a = &q.host.gate
	}
	if k := q.learn; k != nil {
		for _, o := range [...]*account{&k.account, &k.learner.account} {
			if o.paused > max(now, end) {
				a = o
			}
		}
	}
	t = max(t, a.paused)
	wait := t.until(now)
	if t == never {
		wait = 0
	}
	if a.paused > now {
		err := q.error(Paused, a, wait)
		err.detail = a.why
		return err
	}
	return q.error(WaitTooLong, a, wait)
}
