package throttle

import (
	"hash/maphash"
	"net/http"
	"slices"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/answer"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// maxCredentials bounds the credentials of one host or partition that are told
// apart; those beyond share what is learned. It is a bound on memory: with all that a
// learner may hold (maxQuotas, maxEndpoints, mostCounted) a host takes some 35 MB at worst, and
// with what a server usually states, less than one.
const maxCredentials = 256

// learned is what a scope has learned, by credential.
type learned struct {
	by    []*learner // by credential, at most maxCredentials
	other *learner
	start *hostStart // of a host; nil in a partition, which starts with its host
	joint *joint     // nil: there was but one credential

	alone   instant // when the last pause ends that is for one request alone
	resumed instant // when those were ended last
}

// endpointOf is what is learned of requests like q's, and if others share that, what is
// learned of its own credential. home is the record of the host. known says that
// this was asked before. The lock is held.
func (t *Transport) endpointOf(now instant, q *ask, r *record, home *scope, route string, known bool) (k, own *endpoint) {
	s := q.scope
	made(&s.learned)
	if start := &made(&home.learned).start; *start == nil {
		*start = newHostStart(t.learning.words)
		if t.fleet != nil {
			(*start).Share(now)
		}
	}
	if s.learned.joint != nil {
		if l := s.learned.sure(now, q.credential); l != nil {
			return l.kindOf(q.r, route, now), nil
		}
	}
	l := s.learned.learner(now, t, r, home.learned.start, q)
	if common := s.learned.shared(now, l, known); common != nil {
		return common.kindOf(q.r, route, now), l.kindOf(q.r, route, now)
	}
	return l.kindOf(q.r, route, now), nil
}

// identify finds out who makes r. It may call the user's function.
func (t *Transport) identify(r *http.Request) (i identity) {
	if name := t.config.Credential; name != nil {
		i.whose = name(r)
		i.credential = t.learning.callers.Key(i.whose)
	} else {
		i.credential, i.whose = t.learning.callers.Of(r.Header)
	}
	return i
}

// learner is what is learned in r's scope of the credential of q.
func (m *learned) learner(now instant, t *Transport, r *record, start *hostStart, q *ask) *learner {
	for _, l := range m.by {
		if l.credential == q.credential {
			return l
		}
	}
	if len(m.by) >= maxCredentials && !m.drop(now) {
		if m.other == nil {
			m.other = newLearner(t.terms(r.host), &r.scope, start)
		}
		return m.other
	}
	l := newLearner(t.terms(r.host), &r.scope, start)
	l.credential = q.credential
	var from *before
	if l.whose, from = t.known.claim(r, q.whose); from != nil {
		l.terms = l.terms.from(from)
	}
	m.by = append(m.by, l)
	return l
}

// drop forgets a credential of which nothing binds.
func (m *learned) drop(now instant) bool {
	for i, l := range m.by {
		if l.idle(now) && !l.waited() {
			m.by = slices.Delete(m.by, i, i+1)
			l.everyEndpoint((*endpoint).leave)
			return true
		}
	}
	return false
}

// idle reports that nothing that was learned would be missed.
func (m *learned) idle(now instant) bool {
	idle := true
	m.all(func(l *learner) { idle = idle && l.idle(now) && !l.waited() })
	return idle
}

// learn takes in how the attempt ended, before its places and units are given
// back. s is nil if it was answered well and the answer states nothing. It
// returns what was news. The lock is held, and again has to follow.
func (p *attempt) learn(now instant, end ending, status int, s *headers.Signal) lesson {
	if p.endpoint == nil {
		return lesson{}
	}
	k := p.drewOn()
	if p.unnoted(k) {
		k.learner.evidenceOf(k).late()
		f := k.found()
		defer func() { f.evidence.over(p.permit.Granted) }() // which few kinds may have taken meanwhile
	}
	m := k.learner.home()
	if m == nil || m.joint == nil {
		return p.teach(now, k, end, status, s)
	}
	if end == replied {
		m.weigh(now, p.permit.Granted, k, p.own() != nil, s)
		if p.own() != nil {
			p.own().told(now, ticket{sent: p.permit.Granted, cost: p.cost()}, s)
		}
	}
	news := p.teach(now, k, end, status, s)
	k.learner.changes = m.joint.next(now, k) || k.learner.changes
	return news
}

// teach tells k how the attempt ended; s is as learn's.
func (p *attempt) teach(now instant, k *endpoint, end ending, status int, s *headers.Signal) lesson {
	var moved *evidence
	if refused := s != nil && s.Throttled && !answer.Futile(s); end == replied && (refused || k.learner.blame != nil) {
		if k.countPart(now, p.r, refused); refused {
			k, moved = p.move(now, k)
		}
	}
	if s == nil && len(k.quotas) == 0 && k.overload.Quiet() { // it tells that it was good, no more
		k.overload.Heard(now, p.permit.Granted, attribution.Reply{})
		k.object(now, p.r).served(p.permit.Granted)
		k.learner.well(now, k, p.permit.Granted)
		return lesson{}
	}
	if s == nil {
		s = &headers.Signal{}
	}
	if end == replied && status < http.StatusBadRequest && !s.Throttled && k.overload.Quiet() && p.solo() == nil {
		return p.good(now, k, s)
	}
	object := k.object(now, p.r)
	away := s.Throttled && !answer.Futile(s) || !p.tr.Probe && answer.Away(status, s)
	if away {
		object = p.turnedAway(now, k)
	}
	g := ticket{endpoint: k, sent: p.permit.Granted, cost: p.cost(), permit: &p.permit, solo: p.solo(), object: object, away: away, probe: p.tr.Probe, booked: p.shared(), limited: p.permit.limited}
	if len(k.quotas) > 0 || len(s.Limits) > 0 {
		g.r = p.r
	}
	news := k.learner.finish(now, &g, end, status, s)
	if moved != nil {
		moved.over(p.permit.Granted)
	}
	if o := p.solo(); o != nil && o.alone {
		if object != nil && object.account.Paused > now {
			p.record.domain.Load().Mark(&object.account)
		}
		o.order = p.record.domain.Load().Arrive(now) // behind those that wait already
	}
	return news
}

// turnedAway returns the object of p's URL, and makes the solo that p has from now on; both are
// made if need be.
func (p *attempt) turnedAway(now instant, k *endpoint) *solo {
	if p.solo() == nil {
		p.more().solo = newSolo(k, k.learner.terms.words.alone)
	}
	return k.newObject(now, p.r)
}

// good is teach for nearly all answers that state limits, which is less: the request was
// served, and nothing was ever wrong with the host.
func (p *attempt) good(now instant, k *endpoint, s *headers.Signal) (news lesson) {
	l, sent := k.learner, p.permit.Granted
	k.overload.Heard(now, sent, attribution.Reply{})
	object := k.object(now, p.r)
	if len(k.quotas) > 0 || len(s.Limits) > 0 {
		g := ticket{endpoint: k, sent: sent, cost: p.cost(), permit: &p.permit, r: p.r, booked: p.shared()}
		if l.returned(&g); !l.terms.pausesOnly {
			news = l.hear(now, &g, s, false)
			l.silent(now, &g)
		}
	}
	object.served(sent)
	l.well(now, k, sent)
	return news
}

// told is news as OnLearn sees it; nil if answers to requests of that kind told the same before: a
// limit that goes on refusing is none, nor a pause that is prolonged by less than words show.
func (p *attempt) told(now instant, news lesson) *Learned {
	l, why := p.endpoint.learner, news.in(now, p.endpoint.learner.terms.zero)
	last := &made(&p.endpoint.kind().paths).told[news.what]
	if hash := maphash.String(l.terms.seed, why); *last != hash {
		*last = hash
		return &Learned{Ctx: p.tr.Caller, Key: p.record.key, Unit: news.unit(), Name: news.name(), Why: p.record.key + ": " + why}
	}
	return nil
}

// all calls f for every credential.
func (m *learned) all(f func(l *learner)) {
	if m == nil {
		return
	}
	for _, l := range m.by {
		f(l)
	}
	if m.other != nil {
		f(m.other)
	}
	if m.joint != nil && m.joint.common != nil {
		f(m.joint.common)
	}
}

// lift ends every pause that was learned.
func (m *learned) lift(e *queue.Domain, now instant) {
	m.all(func(l *learner) {
		if l.blame != nil {
			for _, o := range l.blame.objects.by {
				o.pauser.lift(e, now)
			}
		}
		l.everyEndpoint(func(k *endpoint) { k.lift(e, now) })
		l.everyFound(func(x *foundLimit) { x.lift(e, now) })
	})
}

// home is what was learned where l is one of several; nil: it is alone.
func (l *learner) home() *learned {
	if l.scope == nil {
		return nil
	}
	return l.scope.learned
}

// alone reports whether no other credential is known, or all are one.
func (l *learner) alone() bool {
	return l.home() == nil || l.home().joint == nil || l.home().joint.common == l
}
