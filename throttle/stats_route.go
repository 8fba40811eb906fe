package throttle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

// RouteStats is one route of a host. A route is the requests that match a budget's
// pattern with a method or a path. Requests that match none are grouped by method
// and first segment of the path, of /v1/orders and /api/v2/orders up to orders. Its own
// limits are those of HostStats.Budgets whose Pattern is Route and those of
// HostStats.Learned whose Route is the same; the host's limits apply to it too.
type RouteStats struct {
	Route      string // "GET /search", or the pattern; "other requests": all those beyond 64 routes. A segment that may be a key is cut short
	State      State  // StateRefusing, StatePaused, StateWaiting or StateOK, the first that is true
	Queue      int    // requests that wait
	OldestWait time.Duration
	InFlight   int
	Why        string        // what a request that came now would wait for, behind those that wait already, in words; "": nothing
	For        time.Duration // how long, as estimated; zero: not known
	Counts
}

// routeStats adds the routes to h, and to its counts what they counted. held is
// what was learned that lets nothing through, who waits is counted already. The lock
// is held.
func (r *record) routeStats(now instant, h *HostStats, gate *queue.Account, held []holding, who census) {
	r.counters.addTo(&h.Counts)
	if name, known := r.firstRoute(); known {
		h.Routes = make([]RouteStats, 1, r.routesCounted())
		x := &h.Routes[0]
		x.Route, x.InFlight, x.Counts = name, int(r.entered), h.Counts
		x.RefusedBy, x.Retries = maps.Clone(h.RefusedBy), maps.Clone(h.Retries)
		r.heldUp(now, x, nil, gate, held)
	}
	if x := r.counters.rest; x != nil {
		h.Pauses += x.byHand
	}
	r.beside(func(o *route) {
		h.Routes = append(h.Routes, RouteStats{Route: o.name, InFlight: o.entered})
		x := &h.Routes[len(h.Routes)-1]
		o.addTo(&x.Counts)
		o.addTo(&h.Counts)
		r.heldUp(now, x, o, gate, held)
		h.Routes[0].InFlight -= o.entered
	})
	r.queued(now, h, who)
	r.refusing(now, h)
	for i := range h.Routes {
		x := &h.Routes[i]
		x.InFlight = max(0, x.InFlight-x.Queue) // some of those that waited may have gone since
		if graver(x.State, h.State) {
			h.State = x.State
		}
	}
	slices.SortFunc(h.Routes, func(a, b RouteStats) int { return cmp.Compare(a.Route, b.Route) })
}

// refusing marks the routes of h of which most are turned away, and h if that
// is so of all together. h.Routes is still in the order of the book.
func (r *record) refusing(now instant, h *HostStats) {
	granted, away := r.counters.lately(now)
	if len(h.Routes) > 0 && r.counters.refusing(now, h.Routes[0].Queue) {
		h.Routes[0].State = StateRefusing
	}
	i := 0
	r.beside(func(o *route) {
		if i++; o.refusing(now, h.Routes[i].Queue) {
			h.Routes[i].State = StateRefusing
		}
		g, a := o.lately(now)
		granted, away = granted+g, away+a
	})
	if away > 0 && away >= granted+h.Queue {
		h.State = StateRefusing
	}
}

// graver reports whether state a deserves a look before b.
func graver(a, b State) bool {
	order := []State{StateOK, StateWaiting, StatePaused, StateRefusing}
	return slices.Index(order, a) > slices.Index(order, b)
}

// routesCounted is at least how many routes there are.
func (s *scope) routesCounted() int {
	if s.book == nil {
		return 1
	}
	return len(s.book.by) + 2
}

// counted is how many who wait are counted before the lock is given up: a part of a
// millisecond.
const counted = 4000

// A census is who waits, by where their requests are counted.
type census map[*route]*waiters

type waiters struct {
	n      int
	oldest *queue.Waiter // of these
}

// census counts those that wait in r, whose domain's lock is held. If they are many it
// gives the lock up in between; it returns the domain whose lock is held then.
func (r *record) census(e *queue.Domain) (census, *queue.Domain) {
	if r.Waiting == 0 {
		return nil, e
	}
	c := make(census)
	var last *queue.Waiter
	for {
		n := 0
		r.Walk(last, func(w *queue.Waiter) bool {
			c.add(w)
			last = w
			n++
			return n < counted
		})
		if n < counted {
			return c, e
		}
		e.Unlock()
		e, _, _ = r.current()
	}
}

func (c census) add(w *queue.Waiter) {
	o := w.By.(*ask).learn.routeOf()
	of := c[o]
	if of == nil {
		of = new(waiters)
		c[o] = of
	}
	if of.n++; of.oldest == nil || w.Since < of.oldest.Since {
		of.oldest = w
	}
}

// queued adds those that wait: of each route the one that waits longest tells
// what one like it would wait for.
func (r *record) queued(now instant, h *HostStats, c census) {
	if r.Waiting == 0 {
		return
	}
	h.OldestWait = time.Duration(now - r.Oldest().Since)
	at := make(map[*route]int) // in h.Routes; the first is 0
	r.beside(func(o *route) { at[o] = len(at) + 1 })
	for o, of := range c {
		x, w := &h.Routes[at[o]], of.oldest
		if x.Queue += of.n; !w.Waits() {
			continue // it has gone since it was counted
		}
		x.OldestWait = time.Duration(now - w.Since)
		x.State = StateWaiting
		newcomer, needs := newcomer(now, w)
		t, a := queue.Estimate(now, &newcomer, needs)
		if a == nil {
			continue // it goes as soon as we let go of the lock
		}
		if a.Paused > now && !w.By.(*ask).learn.restsAlone(a) {
			x.State = StatePaused
		}
		if x.Why, x.For = a.Reason(now), 0; t != never {
			x.For = t.Until(now)
		}
	}
}

// newcomer is one like w that comes now: nobody has refused it yet.
func newcomer(now instant, w *queue.Waiter) (queue.Request, []queue.Need) {
	q, needs := *w.Request, w.By.Needs(now, nil)
	q.Seq = 0
	if q.Alone != nil {
		needs = slices.DeleteFunc(needs, func(d queue.Need) bool { return d.Account == q.Alone })
		q.Alone = nil
	}
	return q, needs
}

// routeOf is where k's requests are counted; nil: in their scope.
func (k *endpoint) routeOf() *route {
	if k == nil {
		return nil
	}
	return k.route
}

// heldUp says in x what lets no request of a route through now: what ends last.
func (r *record) heldUp(now instant, x *RouteStats, o *route, gate *queue.Account, held []holding) {
	x.State = StateOK
	because := func(why string, d time.Duration) {
		if x.Why == "" || d > x.For {
			x.Why, x.For = why, d
		}
	}
	if gate.Paused > now {
		x.State = StatePaused
		because(gate.Why(), gate.Paused.Until(now))
	}
	for _, m := range r.own {
		if m.route > 0 {
			if text, _ := r.routes.Route(m.route - 1); text != x.Route {
				continue
			}
		}
		switch t := m.a.At(now, 1); {
		case t == never:
			because(m.a.Reason(now), 0)
		case t > now:
			because(m.a.Reason(now), t.Until(now))
		}
	}
	for i := range held {
		if c := &held[i]; c.binds(o) {
			if c.what == causeCooldown {
				x.State = StatePaused
				if c.limit.Wait == x.For { // a budget rests as long
					x.Why = ""
				}
			}
			because(c.limit.Why, c.limit.Wait)
		}
	}
}

// restsAlone reports whether a, which k draws on, binds nothing but parts of a kind of request.
func (k *endpoint) restsAlone(a *queue.Account) bool {
	return k != nil && k.isPart() && (a == &k.account || k.group != nil && a == &k.group.account)
}

// binds reports whether c holds up all requests that count in o. What binds parts of a kind leaves
// the others alone.
func (c *holding) binds(o *route) bool {
	endpoints := c.by.endpoints
	switch kinds := c.kinds(); {
	case c.quota != nil:
		endpoints = c.quota.endpoints
	case kinds != nil:
		return slices.ContainsFunc(kinds, func(k *endpoint) bool { return k.route == o && !k.isPart() })
	case c.endpoint != nil:
		return c.endpoint.route == o && !c.endpoint.isPart()
	}
	return slices.ContainsFunc(endpoints, func(k *endpoint) bool {
		return k.route == o && !k.isPart() && (c.what != causeRate || k.group == nil)
	})
}

// addTo adds what c counted to h.
func (c *counters) addTo(h *Counts) {
	h.Granted += c.granted
	h.Latency.add(c.latency)
	x := c.rest
	if x == nil {
		return
	}
	h.Waited += x.waited
	h.Refused += x.refused
	h.Cancelled += x.cancelled
	h.Refunded += x.refunded
	h.Throttled += x.throttled
	h.Pauses += x.paused
	h.Wait.add(x.waits)
	for reason, n := range x.by {
		addTo(&h.RefusedBy, Reason(reason).String(), n)
	}
	for after, n := range x.retries {
		addTo(&h.Retries, after, n)
	}
}

// addTo adds n, if there are any, to what *m, made if need be, has of a key.
func addTo(m *map[string]int64, key string, n int64) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = make(map[string]int64)
	}
	(*m)[key] += n
}
