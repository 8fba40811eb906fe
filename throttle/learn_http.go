package throttle

import (
	"hash/maphash"
	"math"
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
	if s.learned == nil {
		s.learned = &learned{}
	}
	if home.learned == nil {
		home.learned = &learned{}
	}
	if home.learned.start == nil {
		home.learned.start = newHostStart(t.learning.words)
		if t.fleet != nil {
			home.learned.start.Share(now)
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

// waited reports whether somebody waits for l.
func (l *learner) waited() bool {
	waited := false
	l.each(func(a *queue.Account) { waited = waited || a.Waited() })
	return waited
}

// each calls f for every account of l.
func (l *learner) each(f func(a *queue.Account)) {
	l.everyFound(func(x *foundLimit) { f(&x.account) })
	l.everyEndpoint(func(k *endpoint) {
		f(&k.account)
		if k.paths != nil && k.paths.head != nil {
			f(&k.paths.head.account)
		}
		if a := k.asker(); a != nil {
			f(&a.account)
		}
	})
	if l.paths != nil && l.paths.asker != nil {
		f(&l.paths.asker.account)
	}
	for _, q := range l.quotas {
		f(q.account)
	}
}

// everyEndpoint calls f for every endpoint, also that of all others.
func (l *learner) everyEndpoint(f func(k *endpoint)) {
	for _, k := range l.endpoints {
		f(k)
	}
	if l.other != nil {
		f(l.other)
	}
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
		defer func() { f.evidence.over(now, p.permit.Granted) }() // which few kinds may have taken meanwhile
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
		if p.solo() == nil {
			p.more().solo = newSolo(k, k.learner.terms.words.alone)
		}
		object = k.newObject(now, p.r)
	}
	g := ticket{endpoint: k, sent: p.permit.Granted, cost: p.cost(), permit: &p.permit, solo: p.solo(), object: object, away: away, probe: p.tr.Probe, booked: p.shared()}
	if len(k.quotas) > 0 || len(s.Limits) > 0 {
		g.r = p.r
	}
	g.limited = p.permit.limited
	news := k.learner.finish(now, &g, end, status, s)
	if moved != nil {
		moved.over(now, p.permit.Granted)
	}
	if o := p.solo(); o != nil && o.alone {
		if object != nil && object.account.Paused > now {
			p.record.domain.Load().Mark(&object.account)
		}
		o.order = p.record.domain.Load().Arrive(now) // behind those that wait already
	}
	return news
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
		}
	}
	object.served(sent)
	l.well(now, k, sent)
	return news
}

// again plans everyone anew who waits for something learned.
func (p *attempt) again(now instant) {
	k, e := p.endpoint, p.record.domain.Load()
	if k == nil || e.Waiting == 0 {
		return
	}
	l := k.learner
	e.Mark(&l.host.account)
	l.each(e.Mark)
	e.Run(now)
}

// heed puts what was learned into effect for those that wait. The
// lock is held.
func (p *attempt) heed(now instant, news lesson) {
	k := p.endpoint
	if k == nil {
		return
	}
	l, e := k.learner, p.record.domain.Load()
	switch {
	case l.changes:
		e.Redraw(now, &l.scope.Group)
	case l.binds:
		e.Extend(now, &l.scope.Group, l.stated(now, l.quotas...))
	}
	l.changes, l.binds = false, false
	p.lifted(now)
	switch news.what {
	case causeCooldown:
		a, c := &news.pauser().account, news.pauser().cooldown
		if a.Paused <= now {
			p.counts().more().paused++
		}
		until := c.Until()
		if a == &l.account {
			p.record.quiet(now, until)
		}
		e.Pause(now, a, until, c.Sure(), news.in(now, l.terms.zero))
	case causeQuota:
		e.Recheck(now, &l.scope.Group, l.stated(now, news.quota))
	}
}

// stated is when the last of the quotas is there again for everybody, as far as
// the server has stated that: nobody has to wait for them for certain until later.
func (l *learner) stated(now instant, quotas ...*quota) instant {
	end := now
	for _, q := range quotas {
		end = max(end, q.Sure(now, now, 0, math.MaxInt64))
	}
	return end
}

// lifted ends the pauses of accounts that what was learned does not ask for any more.
func (p *attempt) lifted(now instant) {
	if p.endpoint.calm() {
		return
	}
	p.endpoint.pauses(func(x *pauser) {
		if x.cooldown == nil || x.account.Paused <= now || x.cooldown.Until() > now {
			return
		}
		if x == &p.endpoint.learner.pauser && p.record.Gate.Paused <= now {
			p.record.wake(now)
		}
		p.record.domain.Load().Pause(now, &x.account, now, now, "")
	})
}

// pausedTo is the end of the pause of p's host or partition, as far as p's
// credential knows, and until when it is certain. The lock is held.
func (p *attempt) pausedTo() (until, sure instant) {
	gate := &p.record.Gate
	if p.endpoint == nil {
		return gate.Paused, gate.Sure()
	}
	a := &p.endpoint.learner.account
	return max(gate.Paused, a.Paused), max(gate.Sure(), a.Sure())
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
