package throttle

import (
	"net/http"
	"slices"

	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/throttle/internal/absence"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// What budgets count with.
type instant = meter.Instant

const (
	never   = meter.Never
	unknown = meter.Unknown
)

// scope is what requests have in common that draw on the same accounts: a key
// of a Limiter; a host, and a partition of it.
type scope struct {
	entered  int32    // requests of a Transport that wait or are not answered yet
	version  uint32   // of the budgets that own was made from
	counters counters // of all routes, or of the first if there is a book
	queue.Group
	key     string                 // as people see it
	own     []member               // from budgets
	routes  *pattern.Routes[*plan] // of a Transport: that own was made from
	book    *routeBook             // nil: there was one route at most
	learned *learned               // by the requests of a Transport; nil: nothing yet
}

// member is an account and the route for whose requests it counts, from 1; 0:
// for all.
type member struct {
	a     *queue.Account
	route int
}

// identity is who makes a request of a Transport. The zero identity is nobody.
type identity struct {
	credential uint64 // keyed hash of whose
	whose      string // may be a secret
}

// ask is a request, and what decides on which accounts it draws.
type ask struct {
	queue.Request
	identity
	scope   *scope
	cost    Cost
	learn   *endpoint     // what is known of its endpoint; nil: nothing
	own     *endpoint     // what is known of its credential alone, if learn is of several; else nil
	solo    *solo         // of a request that was refused; nil: it was not
	object  *solo         // of its URL; nil: that was not refused
	now     instant       // when that was last looked at
	r       *http.Request // of a Transport; nil: none
	routes  uint64        // bits of the first 64 routes that match
	many    *[]uint64     // of those after; nil: none
	unit    string        // of a request for a part; "": none
	place   bool          // that one holds its place in flight
	roomy   bool          // there is room for what answers stated, whom nobody waits for: see endpoint.stated
	head    *headStart    // that it has; nil: none
	matched uint32        // the version of the budgets whose routes these are
	more    *others       // of a Limiter: the keys it draws on besides; nil: none
}

// others are the scopes of a call that draws on several keys, without the first.
type others struct {
	scopes []*scope
}

// to makes q a request to s.
func (q *ask) to(s *scope) { q.scope, q.Group = s, &s.Group }

// apart sets q.Alone, the account that only q or those to its URL wait for, if one of them was
// refused.
func (q *ask) apart() {
	q.object = q.learn.object(q.now, q.r)
	switch {
	case q.object != nil && (q.solo == nil || !q.solo.alone || q.object.alone):
		q.Alone = &q.object.account
	case q.solo != nil:
		q.Alone = &q.solo.account
	}
}

// Needs appends what q, which waits, draws on as of now.
func (q *ask) Needs(now instant, buf []queue.Need) []queue.Need {
	if q.now = now; q.r != nil && q.matched != q.scope.version {
		q.match() // their numbers are others now
	}
	q.followSplit()
	q.followPart()
	q.solo.lift(q.now)
	if q.learn != nil {
		first := q.object == nil && q.solo == nil
		if q.apart(); first && q.object != nil && !q.object.alone {
			q.object, q.Alone = nil, nil // it came before one to its URL was refused, and may ask before that
		}
	}
	return q.scope.needs(buf, q)
}

// Doubts reports that others share what q draws on, who may not share it with q.
func (q *ask) Doubts() bool { return q.own != nil }

// Barred is until when q's own credential was told to wait; it waits for the others.
func (q *ask) Barred(now instant) (instant, *queue.Account) {
	return q.own.learner.barred(now), &q.learn.learner.account
}

// of is how many units q draws on a.
func (q *ask) of(a *queue.Account) int64 {
	switch t := a.Label; {
	case t.Unit == "":
		return 1
	case q.unit != "":
		if t.Unit == q.unit {
			return 1
		}
		return 0
	case t.Usual > 0:
		if n, said := q.cost[t.Unit]; said {
			return n
		}
		if q.solo != nil && q.solo.unit == t.Unit {
			return q.solo.needs
		}
		return t.Usual
	case q.cost == nil && t.Unit == requests:
		return 1
	}
	return q.cost.of(a.Label.Unit)
}

// needs appends what q draws on, but for the gate.
func (s *scope) needs(buf []queue.Need, q *ask) []queue.Need {
	buf = s.owned(buf, q)
	if q.more != nil {
		return q.more.needs(buf, q)
	}
	if q.learn != nil {
		buf = q.learn.needs(buf, q)
	}
	if q.solo != nil {
		buf = append(buf, queue.Need{Account: &q.solo.account, N: 1})
	}
	return buf
}

// owned is the part of needs that stands in budgets.
func (s *scope) owned(buf []queue.Need, q *ask) []queue.Need {
	for _, m := range s.own {
		if m.route > 0 && !q.on(m.route-1) || m.a.Group == nil && queue.Of(buf, m.a) != nil {
			continue
		}
		buf = append(buf, queue.Need{Account: m.a, N: q.of(m.a)})
	}
	return buf
}

// match finds the routes that q's request matches and returns the first of
// them; "": none.
func (q *ask) match() (first string) {
	routes := q.scope.routes
	q.routes, q.many, q.matched = 0, nil, q.scope.version
	least := routes.Len()
	routes.Each(q.r, func(i int) {
		q.set(i)
		least = min(least, i)
	})
	if least < routes.Len() {
		first, _ = routes.Route(least)
	}
	return first
}

// on reports whether the i-th route matches.
func (q *ask) on(i int) bool {
	if i < 64 {
		return q.routes>>i&1 != 0
	}
	return q.many != nil && i/64-1 < len(*q.many) && (*q.many)[i/64-1]>>(i%64)&1 != 0
}

// set notes that the i-th route matches.
func (q *ask) set(i int) {
	if i < 64 {
		q.routes |= 1 << i
		return
	}
	many := made(&q.many)
	for len(*many) < i/64 {
		*many = append(*many, 0)
	}
	(*many)[i/64-1] |= 1 << (i % 64)
}

// idle reports whether s is as good as new.
func (s *scope) idle(now instant) bool {
	busy := func(m member) bool { return !m.a.Idle(now) }
	return s.Waiting == 0 && s.Gate.Paused <= now && !slices.ContainsFunc(s.own, busy) && s.learned.idle(now)
}

// shut pauses s by hand until the given instant; one that has passed ends the pause.
func (s *scope) shut(e *queue.Domain, now, until instant, why string) {
	if until > now && s.Gate.Paused <= now {
		s.counters.more().byHand++
	}
	e.Pause(now, &s.Gate, until, until, why)
}

// rest is quiet for a pause by hand until the given instant, which may have
// passed. sooner says that the pause before it would have ended later.
func (s *scope) rest(now, until instant, sooner bool) {
	if sooner {
		s.wake(now)
	}
	s.learned.all(func(l *learner) { until = max(until, l.account.Paused) })
	if until > now {
		s.quiet(now, until)
	}
}

// quiet sees to it that the flow of s resumes at its shaped rates after a pause.
func (s *scope) quiet(now, until instant) {
	for _, o := range s.own {
		if m, ok := o.a.Meter.(*meter.Rated); ok && o.a.Group != nil {
			m.Drain(now, until)
		}
	}
}

// wake undoes quiet for a pause that ends before its time.
func (s *scope) wake(now instant) {
	for _, o := range s.own {
		if m, ok := o.a.Meter.(*meter.Rated); ok && o.a.Group != nil {
			m.Resume(now)
		}
	}
}

// came is who came to wait since nobody did.
func (s *scope) came() absence.Crowd {
	n, within := s.Came()
	return absence.Crowd{N: max(1, n), Within: within}
}

// since is when the one came that waits longest; began if nobody waits.
func (s *scope) since(began instant) instant {
	if w := s.Oldest(); w != nil {
		return w.Since
	}
	return began
}
