package throttle

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/absence"
	"github.com/weirhttp/weir/throttle/internal/answer"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/kind"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// What is learned of one credential at one host is bounded, whatever the
// server names. APIs name up to some twenty quotas and have more kinds of request than
// that; 64 of each take some 80 KB.
const (
	maxQuotas    = 64
	maxEndpoints = 64
	manyAnswers  = 1000 // more are not counted: nobody asks for more than the 512 of attribution.FatesOf
)

// A learner is what is known of one credential at one host without having been
// told by the user: pauses, limits that the server states, the rate that it
// shows, how many requests at a time it bears. It is arithmetic on now: it
// keeps no clock, no timer and no lock.
//
// What it knows stands in meters, which the domain asks and charges as it does
// those of budgets: the learner itself (pauses and the rate found), one for
// each kind of request, one for each limit stated, one for the slow start of
// the host. finish tells it how a request ended; then everyone who waits for
// any of them is to be planned anew.
//
// Most hosts never refuse: what only a refusal needs is made by the first one.
type learner struct {
	foundLimit // that binds all requests
	scope      *scope
	credential uint64 // keyed hash of whose the Authorization header is; zero: none
	host       *hostStart
	begun      instant       // when the first request was sent, as long as there is no evidence: a host that is called once costs no more; zero: none was
	endpoints  []*endpoint   // at most maxEndpoints
	other      *endpoint     // shared by the endpoints beyond maxEndpoints
	quotas     []*quota      // at most maxQuotas
	paths      *learnedPaths // nil: no limit was stated
	blame      *blame        // nil: never refused
	whose      uint16        // the caller, as Knowledge says it; zero: anyone
	out        bool          // the first request is under way, likewise
	good       int32         // good answers, at most manyAnswers
	states     bool          // good answers state limits
	changes    bool          // those that wait have to be asked anew what they draw on
	binds      bool          // quotas bind other endpoints than before, but nobody waits for one that binds him no more
	used       bool          // a request of its credential was made
	recurs     bool          // and another, though the first was not refused
	met        bool          // one of its credential was answered
	split      bool          // strangers shared it, who have limits of their own now
	tallies    uint8         // how many of fleet.Tally were made for it
}

// An endpoint is a kind of request: those that one budget pattern matches, or else
// one method and the first segment of the path. Limits bind the endpoints that they were seen
// with.
type endpoint struct {
	pauser   // of a limit that names this endpoint
	key      kind.Key
	learner  *learner
	slow     concurrency.Limit
	quotas   []*quota
	barred   bool    // it was told to stay away for long, and not served since: others ask first
	ends     bool    // kind.Key.Ends of key
	bodies   int32   // of answers that are being read, of a host that was overloaded
	group    *group  // with which it shares limits that bind no others: what is found is of these, not the learner's; nil: it is in none
	last     instant // start
	overload attribution.Overload
	route    *route         // where its requests are counted; nil: in the scope itself
	paths    *endpointPaths // nil: none was looked at
	posts    answer.Posts   // guards itself
}

func newLearner(t *learnTerms, s *scope, host *hostStart) *learner {
	l := &learner{scope: s, host: host}
	l.terms = t
	l.account = queue.Account{Meter: l, Label: t.words.server, Group: &s.Group}
	return l
}

func newEndpoint(l *learner, key kind.Key) *endpoint {
	k := &endpoint{key: key, ends: key.Ends(), learner: l, slow: l.host.Slow.Kind()}
	k.account = queue.Account{Meter: k, Label: l.terms.words.endpoint, Group: &l.scope.Group}
	k.route = l.scope.routeOf(key)
	return k
}

// kindOf returns the endpoint of r, which the pattern route matches; "": none does.
func (l *learner) kindOf(r *http.Request, route string, now instant) *endpoint {
	if route == "" && len(l.endpoints) > 0 {
		if k := l.endpoints[0]; k.ends && !k.divided() && k.key.Holds(r) {
			return k
		}
	}
	return l.endpointOf(kind.Of(r, route), now).within(r, now)
}

// endpointOf returns the endpoint of that name.
func (l *learner) endpointOf(key kind.Key, now instant) *endpoint {
	for i, k := range l.endpoints {
		if k.key == key && !k.isPart() {
			if i > 0 { // what is asked for often is found soon
				l.endpoints[i-1], l.endpoints[i] = k, l.endpoints[i-1]
			}
			return k
		}
	}
	if len(l.endpoints) >= maxEndpoints && !l.dropEndpoint(now, false) {
		if l.other == nil {
			l.other = newEndpoint(l, kind.Key{Rest: otherRequests})
		}
		return l.other
	}
	k := newEndpoint(l, key)
	l.endpoints = append(l.endpoints, k)
	l.blame.met(l, now)
	for _, q := range l.quotas {
		l.partNamed(now, q)
	}
	if l.terms.before != nil {
		l.recall(k, now)
	}
	return k
}

// dropEndpoint makes room by forgetting an endpoint that has been quiet; part: a part of a kind. A
// kind is kept as long as a part of it is, which would not be found without it.
func (l *learner) dropEndpoint(now instant, part bool) bool {
	for i, k := range l.endpoints {
		if (k.isPart() || !part && !l.hasPartOf(k)) && k.idle(now) {
			l.endpoints = slices.Delete(l.endpoints, i, i+1)
			for _, q := range k.quotas {
				q.unbind(k)
			}
			l.dropShares(func(s *share) bool { return s.kind == k })
			k.enterGroup(nil)
			k.leave()
			return true
		}
	}
	return false
}

// idle reports whether k may be forgotten. It may not while somebody waits for it or for what it shares
// with few kinds: who came later would know nothing of what those wait for.
func (k *endpoint) idle(now instant) bool {
	return now-k.last > instant(time.Minute) && k.slow.Idle(now) && !k.rests(now) && k.group.idle(now) &&
		!k.account.Waited() && !(k.group != nil && k.group.account.Waited()) &&
		!slices.ContainsFunc(k.quotas, func(q *quota) bool { return q.account.Waited() })
}

// made is *p, made if need be.
func made[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// finish learns from the end of a request, which still counts as under way. status
// and s are those of its answer, if there was one. It returns what was news.
func (l *learner) finish(now instant, g *ticket, end ending, status int, s *headers.Signal) (news lesson) {
	k := g.endpoint
	l.returned(g)
	if end != replied {
		l.unanswered(now, g, end)
		return lesson{}
	}
	refused, overload := s.Throttled, answer.Overload(status, s)
	l.attribute(now, g, status, s, overload)
	if !l.terms.pausesOnly && (len(s.Limits) > 0 || len(k.quotas) > 0) {
		news = l.hear(now, g, s, refused)
	}
	if answer.Futile(s) {
		return news
	}
	short := l.lacked(now, g, s)
	switch {
	case short != nil && !s.RetryAfter.Known: // when there is enough, is known: nobody has to pause
		return lesson{what: causeQuota, quota: short}
	case short != nil:
		return l.refuse(now, g, s, false)
	case g.away && g.refused(now, s):
		return lesson{}
	case refused && l.concurrency(g, s):
		k.crowded(now, g)
		k.answered(g.sent)
		l.restart(k)
		return lesson{what: causeFlight, endpoint: k}
	case overload:
		return l.overloaded(now, g, status, s)
	case refused:
		if g.limited {
			k.overload.Overloaded(now, false)
		}
		return l.refuse(now, g, s, true)
	}
	if g.object.served(g.sent); status < http.StatusInternalServerError {
		l.silent(now, g)
	}
	l.well(now, k, g.sent)
	return news
}

// attribute takes in an answer; overload says that it is one of a host that is overloaded. If earlier
// ones are shown to have been no limiter's, what was made of them is undone.
func (l *learner) attribute(now instant, g *ticket, status int, s *headers.Signal, overload bool) {
	k := g.endpoint
	busy := (overload || g.limited) && !s.RetryAfter.Known
	verdict := k.overload.Heard(now, g.sent, attribution.Reply{
		Busy: busy, Told: !busy && (s.Throttled || overload), Bare: answer.Bare503(status, s),
		Load: g.load(), Good: k.slow.Good(), Probe: g.probe,
	})
	switch verdict {
	case attribution.Chance:
		k.slow.Absolve()
	case attribution.NoLimiter:
		l.restart(k)
		k.pauses(func(p *pauser) {
			if p.cooldown.Sure() <= now { // the server did not ask for it
				p.cooldown.Lift()
			}
		})
	}
}

// returned notes that a request came back, whatever its answer says.
func (l *learner) returned(g *ticket) {
	if l.paths == nil || l.divided() { // else nobody asks from where
		l.hearFrom(g.where())
	}
	if g.strange() {
		l.changes = true // who waited for it
	}
	for _, q := range g.endpoint.quotas {
		if q.Awaits() && !g.drew(q) {
			q.Came()
		}
	}
}

// unanswered learns from a request that brought no answer.
func (l *learner) unanswered(now instant, g *ticket, end ending) {
	if end == unsent {
		return
	}
	g.endpoint.slow.Unanswered(now, generation(g.started()), now.Sub(g.sent), end == failed)
	if e := g.endpoint.evidenceNow(); e != nil {
		e.lost(g.sent)
	}
	for _, q := range g.endpoint.quotas {
		if g.bound(q) {
			units, _, _ := q.costs(g.cost)
			q.Lost(g.sent, units)
		}
	}
}

// well learns from a good answer to a request to endpoint k that was sent at sent.
func (l *learner) well(now instant, k *endpoint, sent instant) {
	l.good = min(l.good+1, manyAnswers)
	if len(k.quotas) > 0 {
		k.slow.Stated()
		if l.alone() {
			l.host.Slow.Stated()
		}
	}
	took := time.Duration(now - sent)
	if !l.host.Slow.Free() { // else it has no more to learn: what goes wrong cuts endpoints
		l.host.Slow.Answered(now, took)
	}
	k.slow.Answered(now, took)
	back := k.overload.Served(now, sent)
	if l.cooldown != nil || k.cooldown != nil {
		k.answered(sent)
		if l.terms.pausesOnly {
			l.evidenceOf(k).fates.Served(sent)
		}
	}
	if !l.terms.pausesOnly {
		e := k.evidenceNow()
		if e.accepted(now, sent) || back && e != nil {
			e.away = absence.Back(now, l.scope.came())
		}
		l.blame.good(l, k, sent)
		if k.paths != nil && k.paths.reach.Served(sent) {
			l.evidenceOf(k).vague = true
		}
	}
}
