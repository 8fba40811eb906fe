package throttle

import (
	"sort"
	"time"
)

// scope is what requests have in common that draw on the same accounts: a key
// of a Limiter; a host, and a partition of it.
type scope struct {
	key      string   // as people see it
	gate     account  // every request draws on it: pauses
	own      []member // from budgets
	waiters  *waiter  // any order
	waiting  int
	entered  int    // requests of a Transport that wait or are not answered yet
	version  uint64 // of the budgets that own was made from
	counters counters
	learned  *learned // by the requests of a Transport; nil: nothing yet
}

// member is an account and the route for whose requests it counts, from 1; 0:
// for all.
type member struct {
	a     *account
	route int
}

// counters are a scope's numbers since it was made.
type counters struct {
	granted, waited, refused, cancelled, refunded int64
}

// ask is a request as the engine sees it.
type ask struct {
	scope    *scope
	seq      uint64
	priority int
	lane     string
	cost     Cost
	learn    *kind    // what is known of its kind of request; nil: nothing
	host     *scope   // whose gate counts too; nil: none
	routes   uint64   // bits of the first 64 routes that match
	many     []uint64 // of those after
	unit     string   // of a request for a part; "": none
	upTo     int64
	held     bool // units count until the answer
}

// of is how many units q draws on a.
func (q *ask) of(a *account) int64 {
	t := a.terms
	switch {
	case t.unit == "":
		return 1
	case q.unit != "":
		if t.unit == q.unit {
			return 1
		}
		return 0
	case q.cost == nil && t.unit == requests:
		return 1
	}
	return q.cost.of(t.unit)
}

// draws appends what q draws on, but for the gate.
func (s *scope) draws(buf []draw, q *ask) []draw {
	for _, m := range s.own {
		if m.route > 0 && !q.on(m.route-1) || m.a.scope == nil && len(buf) > 0 && has(buf, m.a) {
			continue
		}
		buf = append(buf, draw{a: m.a, n: q.of(m.a)})
	}
	if q.learn != nil {
		buf = q.learn.draws(buf, q)
	}
	return buf
}

// on reports whether the i-th route matches.
func (q *ask) on(i int) bool {
	if i < 64 {
		return q.routes>>i&1 != 0
	}
	return i/64-1 < len(q.many) && q.many[i/64-1]>>(i%64)&1 != 0
}

// set notes that the i-th route matches.
func (q *ask) set(i int) {
	if i < 64 {
		q.routes |= 1 << i
		return
	}
	for len(q.many) < i/64 {
		q.many = append(q.many, 0)
	}
	q.many[i/64-1] |= 1 << (i % 64)
}

func has(draws []draw, a *account) bool {
	for i := range draws {
		if draws[i].a == a {
			return true
		}
	}
	return false
}

// gates appends the gates, which those that wait may wait for.
func (q *ask) gates(buf []draw) []draw {
	buf = append(buf, draw{a: &q.scope.gate, n: 1})
	if q.host != nil {
		buf = append(buf, draw{a: &q.host.gate, n: 1})
	}
	return buf
}

// shut is a gate that q may not pass now, or nil.
func (q *ask) shut(now instant) *account {
	if g := &q.scope.gate; g.paused > now || g.line != nil {
		return g
	}
	if q.host != nil && (q.host.gate.paused > now || q.host.gate.line != nil) {
		return &q.host.gate
	}
	return nil
}

// idle reports whether s is as good as new.
func (s *scope) idle(now instant) bool {
	if s.waiting > 0 || s.gate.paused > now {
		return false
	}
	for _, m := range s.own {
		if !m.a.idle(now) {
			return false
		}
	}
	return s.learned.idle(now)
}

func (a *account) idle(now instant) bool {
	return a.line == nil && a.paused <= now && a.meter.full(now)
}

// redraw works out anew what those that wait in s draw on.
func (e *engine) redraw(now instant, s *scope) {
	all := make([]*waiter, 0, s.waiting)
	for w := s.waiters; w != nil; w = w.next {
		all = append(all, w)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].before(all[j]) })
	for _, w := range all {
		draws := w.gates(s.draws(nil, &w.ask))
		for i := len(w.claims) - 1; i >= 0; i-- {
			k := w.claims[i]
			if n := drawn(draws, k.line.a); n != k.n {
				e.unclaim(k, false)
			}
		}
		w.draws = draws
		if d := fits(draws); d != nil {
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

// recheck refuses those of s whose wait cannot end in time any more, even if
// nobody else waited.
func (e *engine) recheck(now instant, s *scope) {
	for w := s.waiters; w != nil; {
		next := w.next
		for i := range w.draws {
			d := &w.draws[i]
			if d.n == 0 {
				continue
			}
			if t := d.a.at(now, d.n); t != never && t > min(w.expires, w.deadline) {
				e.refuse(now, w, w.late(now, d.a, t))
				break
			}
		}
		w = next
	}
	e.run(now)
}

// pause stops a until the given instant; one that has passed ends the pause.
// What waits for a and cannot wait that long is refused.
func (e *engine) pause(now instant, a *account, until instant, why string) {
	a.paused, a.why = until, why
	e.mark(a)
	if a.scope != nil {
		for w := a.scope.waiters; w != nil; w = w.next {
			for _, k := range w.claims { // they may wait in other lines only
				e.mark(k.line.a)
			}
		}
	}
	e.run(now)
	if a.scope != nil && until > now {
		e.recheck(now, a.scope)
	}
}

// quiet sees to it that the flow of s resumes at its shaped rates after a pause.
func (s *scope) quiet(now, until instant) {
	for _, o := range s.own {
		if m, ok := o.a.meter.(*rated); ok && o.a.scope != nil {
			m.quiet(now, until)
		}
	}
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
			ahead = l.ahead(q.priority, q.lane)
		}
		switch u := d.a.meter.eta(max(now, d.a.paused), ahead, d.n); {
		case u == never:
			event = d.a
		case u > t || bound == nil && (u > now || d.a.line != nil):
			t, bound = max(t, u), d.a
		}
	}
	if event != nil && t <= now {
		return never, event
	}
	return t, bound
}

// permit is what was granted: the draws, and how far they have gone.
type permit struct {
	draws []draw  // of those given back, n is zero
	at    instant // of the grant; once answered, of the answer
	held  bool    // not answered yet
}

// answered dates p's units: the server counted them before now.
func (e *engine) answered(now instant, p *permit) {
	if !p.held {
		return
	}
	p.held, p.at = false, now
	for i := range p.draws {
		d := &p.draws[i]
		if d.n == 0 {
			continue
		}
		d.a.meter.answered(now, d.n, d.mark)
		if d.a.terms.toHeaders {
			d.a.meter.back(now, d.n, d.mark, p.at, true)
			d.n = 0
			e.mark(d.a)
		}
	}
	e.run(now)
}

// free gives the places in flight back.
func (e *engine) free(now instant, p *permit) {
	for i := range p.draws {
		if d := &p.draws[i]; d.n != 0 && d.a.terms.unit == "" {
			d.a.meter.back(now, d.n, d.mark, p.at, true)
			d.n = 0
			e.mark(d.a)
		}
	}
	e.run(now)
}

// back gives everything back: nothing was sent.
func (e *engine) back(now instant, p *permit) {
	for i := range p.draws {
		if d := &p.draws[i]; d.n != 0 {
			d.a.meter.back(now, d.n, d.mark, p.at, p.held)
			d.n = 0
			e.mark(d.a)
		}
	}
	p.held = false
	e.run(now)
}

// settle charges or gives back what actual names and differs from what was
// granted. Units that actual does not name stay.
func (e *engine) settle(now instant, p *permit, actual Cost) {
	for i := range p.draws {
		d := &p.draws[i]
		n, named := actual[d.a.terms.unit]
		n = max(0, n)
		if !named || d.a.terms.unit == "" || n == d.n {
			continue
		}
		if n > d.n {
			d.mark = d.a.meter.take(now, n-d.n, p.held)
		} else {
			d.a.meter.back(now, d.n-n, d.mark, p.at, p.held)
		}
		d.n = n
		e.mark(d.a)
	}
	e.run(now)
}

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
	reason := WaitTooLong
	if a.paused > now {
		reason = Paused
	}
	wait := t.until(now)
	if t == never {
		wait = 0
	}
	err := w.error(reason, a, wait)
	if a.paused > now {
		err.detail = a.why
	}
	err.deadline = w.deadline <= w.expires
	err.bound = min(w.expires, w.deadline).until(now)
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

// newWaiter makes a waiter of q.
func newWaiter(q *ask, draws []draw) *waiter {
	w := &waiter{ask: *q, ready: make(chan struct{}, 1)}
	w.draws = w.gates(append(make([]draw, 0, len(draws)+2), draws...))
	w.expires, w.deadline = never, never
	return w
}
