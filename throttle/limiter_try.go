package throttle

import (
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Try spends c if key has room for it now and nobody waits who goes first. Its
// priority is zero, and of those with that priority it comes last. It never waits.
// A place in flight must be free, but is not held: see TryTake. A cost that never
// fits, or is negative, is not allowed and has the longest RetryAfter there is.
func (l *Limiter) Try(key string, c Cost) (d Decision) {
	if l.fleet != nil {
		_, d = l.tryShared([]string{key}, c, false)
		return d
	}
	l.try(key, c, &d, nil)
	return d
}

// TryTake is Try with a Grant, by which a place in flight is held until its
// Settle or Cancel. If it is not allowed there is none: the Grant is zero.
func (l *Limiter) TryTake(key string, c Cost) (g Grant, d Decision) {
	if l.fleet != nil {
		return l.tryShared([]string{key}, c, true)
	}
	l.try(key, c, &d, &g)
	return g, d
}

// Look says what Try would, and spends nothing. Remaining is what could be spent
// now. With a Store, which is asked, its RetryAfter may be too long where units
// are kept one by one.
func (l *Limiter) Look(key string, c Cost) (d Decision) {
	k, e, s := l.meet(key, false)
	if s == nil {
		if k.try(&d, nil, c, false) {
			return d
		}
		e, s = k.grow(l.domains, key)
	}
	q := ask{cost: c}
	var room [4]queue.Need
	d, _, _ = l.decide(e, s, &q, room[:0], true)
	r := s.rule
	e.Unlock()
	if l.fleet == nil || r.err != nil || c.check() != nil {
		return d
	}
	left, full, wait := l.fleet.Look(r.shared(key), c)
	if wait > 0 {
		d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
	}
	d.Remaining, d.ResetAfter = min(d.Remaining, left), max(d.ResetAfter, full)
	return d
}

// try is Try and TryTake without a Store. g is for the Grant; nil: none is wanted.
func (l *Limiter) try(key string, c Cost, d *Decision, g *Grant) {
	k, e, s := l.meet(key, false)
	if s == nil {
		if k.try(d, g, c, true) {
			return
		}
		e, s = k.grow(l.domains, key)
	}
	defer e.Unlock()
	q := ask{cost: c}
	var room [4]queue.Need
	got, needs, now := l.decide(e, s, &q, room[:0], false)
	made := l.tried(e, s, &got, needs, now, g != nil)
	if *d = got; g != nil {
		*g = made
	}
}

// tried makes the grant of what decide granted.
func (l *Limiter) tried(e *queue.Domain, s *subject, d *Decision, needs []queue.Need, now instant, held bool) (g Grant) {
	if !d.Allowed {
		return g
	}
	if !held {
		e.Free(now, &queue.Permit{Needs: needs, Granted: now, Answered: now})
	}
	if held || l.fleet != nil {
		s.grant(&g, needs, now)
	}
	return g
}

// decide is try for q, which is one of s, with the lock held; looking spends
// nothing. What q draws on is appended to buf.
func (l *Limiter) decide(e *queue.Domain, s *subject, q *ask, buf []queue.Need, look bool) (d Decision, needs []queue.Need, now instant) {
	if now = e.Now(); s.rule.err != nil {
		d.RetryAfter = unknown
		return d, nil, now
	}
	q.to(&s.scope)
	needs = s.needs(buf, q)
	reason := WaitTooLong
	switch {
	case q.cost.check() != nil:
		d.RetryAfter, reason = unknown, NeverFits
	case look && q.Shut(now) == nil && queue.Room(now, needs), !look && e.Enter(now, needs, &q.Request):
		d.Allowed = true
	case queue.NeverFits(now, needs) != nil:
		d.RetryAfter, reason = unknown, NeverFits
	default:
		var drawn []queue.Need
		if look {
			d.Allowed = e.Passes(now, &q.Request, needs)
		} else if drawn, d.Allowed = e.Overtake(now, &q.Request, needs); d.Allowed {
			needs = drawn
		}
		if !d.Allowed {
			t, a := queue.Estimate(now, &q.Request, needs)
			d.RetryAfter = queue.Behind(now, t, needs).Until(now)
			if a != nil && a.Paused > now {
				reason = Paused
			}
		}
	}
	if !look {
		q.tally(now, d.Allowed, reason)
	}
	d.describe(now, needs)
	return d, needs, now
}

// tally counts a decision for each of q's keys.
func (q *ask) tally(now instant, granted bool, reason Reason) {
	count := func(s *scope) {
		if granted {
			s.counters.granted++
		} else {
			s.counters.refuse(now, reason)
		}
	}
	count(q.scope)
	if q.more != nil {
		for _, s := range q.more.scopes {
			count(s)
		}
	}
}
