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
	end := w.ends()
	err := w.refusal(now, t, a, end)
	err.deadline = w.deadline <= w.expires
	err.bound = end.Until(now)
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
// alone would be, that is why. What is only guessed of a pause is a reason when
// end has come.
func (q *ask) refusal(now, t instant, a *account, end instant) *Error {
	paused := func(o *account) instant {
		if end > now {
			return o.sure
		}
		return o.paused
	}
	if g := &q.scope.gate; a == nil || paused(g) > max(now, end) {
		a = g
	}
	if q.host != nil && paused(&q.host.gate) > max(now, end) {
		a = &q.host.gate
	}
	if k := q.learn; k != nil {
		for _, o := range [...]*account{&k.account, &k.learner.account} {
			if paused(o) > max(now, end) {
				a = o
			}
		}
	}
	t = max(t, paused(a))
	wait := t.Until(now)
	if t == never {
		wait = 0
	}
	if paused(a) > now {
		err := q.error(Paused, a, wait)
		err.detail = a.why
		return err
	}
	err := q.error(WaitTooLong, a, wait)
	if k := q.learn; k != nil && a == &k.learner.account {
		err.detail = a.reason(now)
	}
	return err
}
