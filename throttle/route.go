package throttle

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/histogram"
	"github.com/weirhttp/weir/throttle/internal/kind"
)

// maxRoutes bounds the routes of a scope that are counted apart. All others are
// otherRequests. A page of Stats shows no more than a person would read, and 64 take some
// 20 KB of a host at most.
const (
	maxRoutes     = 64
	otherRequests = "other requests"
)

// counters are numbers since a scope was made, of it or of one of its routes.
// What most hosts do without has memory of its own.
type counters struct {
	granted int64
	latency *histogram.Counts // nil: no answer yet
	rest    *seldom           // nil: none yet
	recent  recent
}

// seldom is what happens to few hosts.
type seldom struct {
	waited, refused, cancelled, refunded, throttled int64

	away    uint32               // got an error: refused, or their deadline passed while they waited
	paused  int64                // pauses that its answers began
	byHand  int64                // that others began; of a scope only
	by      [StoreDown + 1]int64 // refused, by reason
	retries map[string]int64     // by what they followed; nil: none. As many as package retry has outcomes
	waits   *histogram.Counts    // nil: none is over yet
}

// more is where events are counted. The lock is held.
func (c *counters) more() *seldom { return made(&c.rest) }

// takeBack makes a grant of a refusal by the store; why is what its caller is told.
func (c *counters) takeBack(now instant, why error) {
	c.granted--
	if refused, ok := why.(*Error); ok {
		c.refuse(now, refused.Reason)
	} else {
		c.more().cancelled++
	}
}

// refuse counts a refusal.
func (c *counters) refuse(now instant, r Reason) {
	c.turnAway(now)
	x := c.more()
	x.refused++
	x.by[min(r, StoreDown)]++
}

// retry counts n attempts that followed others, which ended as after says; "":
// they are the first.
func (c *counters) retry(after string, n int64) {
	if after == "" {
		return
	}
	x := c.more()
	if x.retries == nil {
		x.retries = make(map[string]int64)
	}
	x.retries[after] += n
}

// routeBook has the counters of a scope's routes. As long as all requests of a scope
// have been of one route it has none: then its own counters say it all, and
// afterwards they are those of that first route.
type routeBook struct {
	first string
	by    []*route // the others, at most maxRoutes
	rest  *route   // shared by the routes beyond; nil: there was none
}

// route is what is counted of one kind of request, whatever its credential.
type route struct {
	name string
	counters
	endpoints int // that count here
	entered   int // requests that wait or are not answered yet
}

// counts is where a request is counted. The lock is held.
func (q *ask) counts() *counters { return q.scope.countersOf(q.learn) }

// counts is where the request is counted. The lock is held.
func (p *attempt) counts() *counters { return p.record.countersOf(p.endpoint) }

func (s *scope) countersOf(k *endpoint) *counters {
	if k != nil && k.route != nil {
		return &k.route.counters
	}
	return &s.counters
}

// enter notes that a request of k waits or is sent, or with -1 that it is no more.
func (k *endpoint) enter(n int) {
	if k != nil && k.route != nil {
		k.route.entered += n
	}
}

// routeOf is where requests to a new endpoint are counted; nil: in s itself.
func (s *scope) routeOf(key kind.Key) *route {
	name := key.String()
	if s.book == nil {
		first, known := s.firstRoute()
		if !known || first == name {
			return nil
		}
		s.book = &routeBook{first: first}
	}
	r := s.book.route(name)
	if r != nil {
		r.endpoints++
	}
	return r
}

// firstRoute is the route of all requests so far, if there were any.
func (s *scope) firstRoute() (name string, known bool) {
	if s.book != nil {
		return s.book.first, true
	}
	s.learned.all(func(l *learner) {
		if len(l.endpoints) > 0 {
			name, known = l.endpoints[0].key.String(), true
		}
	})
	return name, known
}

// route returns the route of that name; nil: the first.
func (b *routeBook) route(name string) *route {
	if name == b.first {
		return nil
	}
	if i := slices.IndexFunc(b.by, func(r *route) bool { return r.name == name }); i >= 0 {
		return b.by[i]
	}
	r := &route{name: name}
	if name != otherRequests && len(b.by) < maxRoutes-1 {
		b.by = append(b.by, r)
		return r
	}
	if b.rest == nil {
		b.rest = &route{name: otherRequests}
	}
	least := b.idle()
	if name == otherRequests || least < 0 {
		return b.rest
	}
	b.rest.merge(&b.by[least].counters)
	b.by[least] = r
	return r
}

// idle is the route with the fewest requests of those that nobody uses; -1: none.
func (b *routeBook) idle() int {
	least := -1
	for i, r := range b.by {
		if r.endpoints == 0 && r.entered == 0 && (least < 0 || r.granted < b.by[least].granted) {
			least = i
		}
	}
	return least
}

// leave notes that k is forgotten.
func (k *endpoint) leave() {
	if k.route != nil {
		k.route.endpoints--
	}
}

// merge adds what o counted.
func (c *counters) merge(o *counters) {
	c.granted += o.granted
	for i := range c.recent.granted { // none of it was lately
		c.recent.granted[i] += uint32(o.granted)
		c.recent.away[i] += o.away()
	}
	histogram.Merge(&c.latency, o.latency)
	if o.rest == nil {
		return
	}
	x, y := c.more(), o.rest
	x.away += y.away
	x.waited, x.refused, x.cancelled = x.waited+y.waited, x.refused+y.refused, x.cancelled+y.cancelled
	x.refunded, x.throttled, x.paused = x.refunded+y.refunded, x.throttled+y.throttled, x.paused+y.paused
	for i, n := range y.by {
		x.by[i] += n
	}
	for after, n := range y.retries {
		c.retry(after, n)
	}
	histogram.Merge(&x.waits, y.waits)
}

// beside calls f for each route but the first.
func (s *scope) beside(f func(r *route)) {
	if s.book == nil {
		return
	}
	for _, r := range s.book.by {
		f(r)
	}
	if s.book.rest != nil {
		f(s.book.rest)
	}
}

// recentSpan is the shortest time that a state of refusing looks back; the
// longest is two of it. Callers that come every few seconds are seen in it, and
// a host that serves again is not blamed for long.
const recentSpan = instant(10 * time.Second)

// recent is what counters held when the present span of time began and when
// the one before it did. A span begins with the first event after the last one ended.
// Differences are right although the numbers wrap.
type recent struct {
	ends    instant // of the present span
	granted [2]uint32
	away    [2]uint32
}

// grant counts one that was let through.
func (c *counters) grant(now instant) {
	if now >= c.recent.ends {
		c.turn(now)
	}
	c.granted++
}

// turnAway counts one that got an error instead of room, also if it had waited
// until its deadline.
func (c *counters) turnAway(now instant) {
	if now >= c.recent.ends {
		c.turn(now)
	}
	c.more().away++
}

// turn begins a new span.
func (c *counters) turn(now instant) {
	x := &c.recent
	granted, away := uint32(c.granted), c.away()
	x.granted[0], x.away[0] = x.granted[1], x.away[1]
	if now-x.ends >= recentSpan { // nothing happened in the span before
		x.granted[0], x.away[0] = granted, away
	}
	x.granted[1], x.away[1] = granted, away
	x.ends = now.Add(time.Duration(recentSpan))
}

func (c *counters) away() uint32 {
	if c.rest == nil {
		return 0
	}
	return c.rest.away
}

// lately is how many were let through and turned away in the last 10 to 20 s.
func (c *counters) lately(now instant) (granted, away int) {
	x, since := &c.recent, 0
	switch {
	case now-x.ends >= recentSpan:
		return 0, 0
	case now >= x.ends:
		since = 1
	}
	return max(0, int(int32(uint32(c.granted)-x.granted[since]))), max(0, int(int32(c.away()-x.away[since])))
}

// refusing reports whether at least half of those that came lately were turned
// away; queued ones wait still.
func (c *counters) refusing(now instant, queued int) bool {
	granted, away := c.lately(now)
	return away > 0 && away >= granted+queued
}
