package throttle

import (
	"net/http"

	"github.com/weirhttp/weir/internal/pattern"
)

// scope is what requests have in common that draw on the same accounts: a key
// of a Limiter; a host, and a partition of it.
type scope struct {
	key      string   // as people see it
	gate     account  // every request draws on it: pauses
	own      []member // from budgets
	waiters  *waiter  // any order
	waiting  int
	entered  int        // requests of a Transport that wait or are not answered yet
	version  uint64     // of the budgets that own was made from
	counters counters   // of all routes, or of the first if there is a book
	book     *routeBook // nil: there was one route at most
	learned  *learned   // by the requests of a Transport; nil: nothing yet
}

// member is an account and the route for whose requests it counts, from 1; 0:
// for all.
type member struct {
	a     *account
	route int
}

// ask is a request as the engine sees it.
type ask struct {
	scope      *scope
	seq        uint64
	priority   int
	lane       string
	cost       Cost
	learn      *kind         // what is known of its kind of request; nil: nothing
	own        *kind         // what is known of its credential alone, if learn is of several; else nil
	solo       *solo         // of a request that was refused; nil: it was not
	now        instant       // when that was last looked at
	host       *scope        // whose gate counts too; nil: none
	r          *http.Request // of a Transport; nil: none
	credential uint64        // of a Transport: keyed hash of whose r is; zero: nobody's
	routes     uint64        // bits of the first 64 routes that match
	many       *[]uint64     // of those after; nil: none
	unit       string        // of a request for a part; "": none
	upTo       int64
}

// held reports whether units count until the answer.
func (q *ask) held() bool { return q.r != nil }

// answeredAt is the permit.answered of what q was just granted.
func (q *ask) answeredAt(granted instant) instant {
	if q.held() {
		return 0
	}
	return granted
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
	buf = s.owned(buf, q)
	if q.learn != nil {
		buf = q.learn.draws(buf, q)
	}
	if q.solo != nil {
		buf = append(buf, draw{a: &q.solo.account, n: 1})
	}
	return buf
}

// owned is the part of draws that stands in budgets.
func (s *scope) owned(buf []draw, q *ask) []draw {
	for _, m := range s.own {
		if m.route > 0 && !q.on(m.route-1) || m.a.scope == nil && len(buf) > 0 && has(buf, m.a) {
			continue
		}
		buf = append(buf, draw{a: m.a, n: q.of(m.a)})
	}
	return buf
}

// match finds the routes that q's request matches and returns the first of
// them; "": none.
func (q *ask) match(routes *pattern.Routes[*plan]) (first string) {
	q.routes, q.many = 0, nil
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
	if q.many == nil {
		q.many = new([]uint64)
	}
	for len(*q.many) < i/64 {
		*q.many = append(*q.many, 0)
	}
	(*q.many)[i/64-1] |= 1 << (i % 64)
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
	return a.line == nil && a.paused <= now && a.meter.State(now).Idle
}
