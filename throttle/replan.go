package throttle

import (
	"sort"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// redraw works out anew what those that wait in s draw on.
func (e *engine) redraw(now instant, s *scope) {
	all := make([]*waiter, 0, s.waiting)
	for w := s.waiters; w != nil; w = w.next {
		all = append(all, w)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].before(all[j]) })
	for _, w := range all {
		w.now = now
		draws := w.gates(s.draws(nil, &w.ask))
		for i := len(w.claims) - 1; i >= 0; i-- {
			k := w.claims[i]
			if n := drawn(draws, k.line.a); n != k.n {
				e.unclaim(k, false)
			}
		}
		w.draws = draws
		if d := fits(now, draws); d != nil {
			e.refuse(now, w, w.error(NeverFits, d.a, 0))
		}
	}
	for _, w := range all {
		if !w.over() && !e.try(now, w) {
			e.retry(w) // by other terms, other times
		}
	}
	e.run(now)
	e.recheck(now, s)
}

// drawn is what draws take from a.
func drawn(draws []draw, a *account) int64 {
	for i := range draws {
		if draws[i].a == a {
			return draws[i].n
		}
	}
	return 0
}

// pause stops a until the given instant; one that has passed ends the pause.
// Until sure that is certain: what waits for a and cannot wait that long is
// refused.
func (e *engine) pause(now instant, a *account, until, sure instant, why string) {
	if a.scope != nil && a == &a.scope.gate && until > now && a.paused <= now {
		a.scope.counters.more().byHand++
	}
	a.paused, a.sure, a.why = until, sure, why
	e.mark(a)
	if a.scope != nil {
		for w := a.scope.waiters; w != nil; w = w.next {
			for _, k := range w.claims { // they may wait in other lines only
				e.mark(k.line.a)
			}
		}
	}
	e.run(now)
	if a.scope != nil && sure > now {
		e.recheck(now, a.scope)
	}
}

// rest is quiet for a pause by hand until the given instant, which may have
// passed. sooner says that the pause before it would have ended later.
func (s *scope) rest(now, until instant, sooner bool) {
	if sooner {
		s.wake(now)
	}
	s.learned.all(func(l *learner) { until = max(until, l.account.paused) })
	if until > now {
		s.quiet(now, until)
	}
}

// quiet sees to it that the flow of s resumes at its shaped rates after a pause.
func (s *scope) quiet(now, until instant) {
	for _, o := range s.own {
		if m, ok := o.a.meter.(*meter.Rated); ok && o.a.scope != nil {
			m.Drain(now, until)
		}
	}
}

// wake undoes quiet for a pause that ends before its time.
func (s *scope) wake(now instant) {
	for _, o := range s.own {
		if m, ok := o.a.meter.(*meter.Rated); ok && o.a.scope != nil {
			m.Resume(now)
		}
	}
}

// overtake grants q, which may not wait, if there is room now and it ranks before
// those that wait for more. If so it returns what was charged.
func (e *engine) overtake(now instant, q *ask, draws []draw) ([]draw, bool) {
	for i := range draws {
		if d := &draws[i]; d.n != 0 && d.a.at(now, d.n) > now {
			return nil, false
		}
	}
	w := newWaiter(q, draws)
	if w.seq == 0 {
		e.seq++
		w.seq = e.seq
	}
	e.list(now, w)
	ok := e.try(now, w)
	if !ok {
		e.leave(w)
	}
	e.run(now)
	return w.draws, ok
}

// behind is t, when draws may be granted, or if that is now, so that only ranks
// stand against it, when they may be after all those that wait.
func behind(now, t instant, draws []draw) instant {
	if t > now {
		return t
	}
	for i := range draws {
		d := &draws[i]
		if d.n == 0 || d.a.line == nil {
			continue
		}
		if u := d.a.meter.ETA(max(now, d.a.paused), d.a.line.units, d.n); u != never {
			t = max(t, u)
		}
	}
	return t
}

// estimate is when draws would be granted if they queued now, and the account
// that this is due to, nil if that is now. never: only an event can say.
func (e *engine) estimate(now instant, q *ask, draws []draw) (instant, *account) {
	t, bound := now, (*account)(nil)
	if g := q.shut(now); g != nil {
		t, bound = max(now, g.paused), g
	}
	var event *account
	for i := range draws {
		d := &draws[i]
		if d.n == 0 {
			continue
		}
		var ahead int64
		if l := d.a.line; l != nil {
			ahead = l.ahead(q)
		}
		switch u := d.a.meter.ETA(max(now, d.a.paused), ahead, d.n); {
		case u == never:
			event = d.a
		case u > t || bound == nil && (u > now || d.a.line != nil):
			t, bound = max(t, u), d.a
		case u == t && bound != nil && bound.paused <= now && d.a.paused > now:
			bound = d.a // says more than a budget that rests as long as it is paused
		}
	}
	if event != nil && t <= now {
		return never, event
	}
	return t, bound
}
