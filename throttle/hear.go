package throttle

import (
	"math"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/answer"
	"github.com/weirhttp/weir/throttle/internal/histogram"
)

// Hear is trip.Ear's.
func (p *attempt) Hear(resp *http.Response) *trip.Said {
	if p.record == nil { // no attempt came here
		return nil
	}
	graphQL := p.graphQL(resp)
	p.permit.plain = !graphQL
	if !p.record.t.answers.Speaks(resp, graphQL) {
		return nil
	}
	s, ruled := p.read(resp, graphQL)
	return &trip.Said{Signal: s, Ruled: ruled, Guess: p.permit.guessed}
}

// graphQL reports whether the request was one of GraphQL, as far as that matters for
// reading resp.
func (p *attempt) graphQL(resp *http.Response) bool {
	var posts *answer.Posts
	if p.endpoint != nil {
		posts = &p.endpoint.posts
	}
	return p.record.t.answers.GraphQL(p.r, resp, posts)
}

// read is what resp says. It may wait for the start of its body.
func (p *attempt) read(resp *http.Response, graphQL bool) (s headers.Signal, ruled bool) {
	s, ruled = p.record.t.answers.Read(time.Now(), &p.record.memory, p.r, resp, graphQL)
	if !ruled {
		p.explain(resp.StatusCode, &s)
	}
	return s, ruled
}

// hear takes in what an answer says, before what it holds is given back, so
// that nobody is let through in between who should not be.
//
// It reports whether places in flight are held until the body's end.
func (t *Transport) hear(p *attempt, resp *http.Response) bool {
	var said *headers.Signal
	var recalled *headers.Recalled // nil: it was read anew
	p.tr.Throttled = false
	known := p.tr.Heard(resp)
	graphQL := known == nil && !p.permit.plain && p.graphQL(resp)
	if known != nil {
		said = &known.Signal
	} else if recalled = t.answers.Recall(&p.record.memory, resp, graphQL); recalled != nil {
		said = &recalled.Signal
	} else if t.answers.Speaks(resp, graphQL) {
		s, ruled := p.read(resp, graphQL)
		if resp.StatusCode >= 400 || s.Throttled || ruled { // else no other layer asks
			p.tr.Keep(resp, &trip.Said{Signal: s, Ruled: ruled, Guess: p.permit.guessed})
		}
		said = &s
	}
	if said != nil {
		p.tr.Throttled = said.Throttled && !answer.Futile(said) || resp.StatusCode == http.StatusServiceUnavailable && said.RetryAfter.Known
	}
	bare := resp.Body == nil || resp.Body == http.NoBody
	news, holds := p.heard(t.domains.Read(), resp.StatusCode, said, bare)
	if t.fleet != nil && said != nil {
		p.tellFleet(said)
	}
	if recalled != nil {
		recalled.Done() // a panic before costs the next answer an allocation
	}
	if news != nil {
		t.config.OnLearn(*news)
	}
	return holds
}

// heard is hear under the lock.
func (p *attempt) heard(at instant, status int, s *headers.Signal, bare bool) (told *Learned, holds bool) {
	e := p.record.lock()
	defer e.Unlock()
	now := e.NowFrom(at)
	p.uncount()
	c := p.counts()
	c.retry(p.tr.After(), 1)
	if p.tr.Throttled {
		c.more().throttled++
	}
	histogram.Add(&c.latency, time.Duration(now-p.permit.Granted))
	k := p.endpoint // the one whose places p has: learn may find that the request belongs to a part
	shared := k != nil && k.window() != nil
	if shared {
		k.takeWindow(now)
	}
	news := p.learn(now, replied, status, p.unexplained(s))
	if shared {
		p.windowLearned(now, !p.tr.Throttled && status < 500)
	}
	p.heed(now, news)
	p.permit.vacate(now, k)
	e.Answered(now, &p.permit.Permit, bare)
	holds = !bare && (p.reads(status) || p.places())
	p.again(now)
	if news.what == causeNone || p.record.t.config.OnLearn == nil {
		return nil, holds
	}
	return p.told(now, news), holds
}

// explain calls an answer that says 503 and no more a refusal as long as a limiter
// may be why: then it is no failure of the host, and the request is repeated.
func (p *attempt) explain(status int, s *headers.Signal) {
	if s.Throttled || p.endpoint == nil || p.tr.Probe || !answer.Bare503(status, s) {
		return
	}
	e := p.record.lock()
	defer e.Unlock()
	k, now := p.endpoint, e.Now()
	if k.learner.terms.pausesOnly {
		return
	}
	found := k.evidenceNow()
	past := found.past()
	past.Waits = p.record.t.maxWait(p.record.host)
	p.permit.limited = k.overload.Limited(now, past)
	found.doubt(p.permit.limited && k.overload.Plausible(), int(k.learner.scope.Waiting), past.Waits)
	if p.permit.limited || k.overload.Spares(now) {
		s.Throttled, s.Kind, p.permit.guessed = true, headers.Quota, true
	}
}

// unexplained is s without what explain made of it, unless that is most likely so:
// whether it was a refusal, learning has to find out.
func (p *attempt) unexplained(s *headers.Signal) *headers.Signal {
	if s == nil || !p.permit.guessed || p.permit.limited {
		return s
	}
	said := *s
	said.Throttled, said.Kind = false, headers.NoKind
	return &said
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
