package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/absence"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// settledIn is after how many good answers a client is one of a steady flow, not of a
// herd: a handful may be what all of a herd got.
const settledIn = 8

// A 503 now and then does not let fewer requests go to a host that is well known, and
// takes its time. Room for a few more comes only with each answer's time. So where one in
// fifty is a 503, a host that needs 200 at a time would get a tenth of that. On quicker
// hosts it does no harm, and what limiters refuse is to be seen soon.
const (
	slowTrip  = 500 * time.Millisecond // from there on room for one more comes less than twice a second
	wellKnown = 64                     // good answers: as many as a slow start may have under way
)

// suspectPause is the longest pause that is guessed while it is not clear
// whether a pause is of any use: the shortest that a Retry-After in whole seconds can name.
const suspectPause = time.Second

// proven is after how many good answers a host that refuses all is rather down than
// a limiter that has been asked too much: it served as much before.
const proven = 30

// overloaded learns from an answer that says that the host is overloaded. That
// is a matter of requests at a time, unless it also says when to come back, or
// proves to be a limit that does not say its name.
func (l *learner) overloaded(now instant, g *ticket, status int, s *headers.Signal) lesson {
	k := g.endpoint
	plain := (!s.Throttled || status >= 500) && !s.RetryAfter.Known
	if k.overload.Overloaded(now, plain) {
		return lesson{}
	}
	if plain && k.slow.Trip() >= slowTrip && k.slow.Good() >= wellKnown && k.overload.Seldom() {
		return lesson{}
	}
	k.slow.Lost(now, max(1, now.Sub(g.sent)))
	narrow := !l.terms.pausesOnly && !g.probe && k.overload.Limits(now)
	if plain && !narrow {
		return lesson{what: causeFlight, endpoint: k}
	}
	return l.refuse(now, g, s, narrow || s.RetryAfter.Known && !g.probe)
}

// concurrency reports that a refusal was for requests at a time, not for
// requests per time: the server says so, or it refused one that started alone
// while others were under way, of which some still are.
func (l *learner) concurrency(g *ticket, s *headers.Signal) bool {
	if l.terms.pausesOnly {
		return false
	}
	if named := s.Kind == headers.Concurrency; named || g.endpoint.slow.UnderWay() <= 1 {
		return named && (l.terms.Fleet || g.endpoint.slow.UnderWay() > 1) // with nothing else under way only time helps
	}
	if e := g.endpoint.evidenceNow(); e != nil && e.Shuts() {
		return false
	}
	return (g.lone() && g.endpoint.slow.BesideOthers() || g.endpoint.slow.Tight() || g.endpoint.slow.Silent()) && !s.RetryAfter.Known && len(s.Limits) == 0 && len(g.endpoint.quotas) == 0 && s.Kind != headers.Overload
}

// refuse pauses, and tells the evidence if a limit may be what was wrong.
func (l *learner) refuse(now instant, g *ticket, s *headers.Signal, rate bool) lesson {
	k := g.endpoint
	if q := l.narrow(now, g, s); q != nil {
		return lesson{what: causeQuota, quota: q}
	}
	said, named, explained := l.hintOf(now, k, s)
	if g.solo != nil && l.byOneOf(k, s) {
		g.solo.rest(now, g, said)
		said = cooldown.Hint{} // of the others, which may meet another server, it says nothing
	}
	made(&l.cooldown)
	ended := k.cooldown.Ended()
	alone := !l.terms.pausesOnly && made(&l.blame).refused(l, now, k, g.sent, said)
	c := lesson{what: causeCooldown, found: k.found()}
	if !l.terms.pausesOnly && (named || alone) {
		c = lesson{what: causeCooldown, endpoint: k}
		made(&k.cooldown)
	}
	if c.pauser() != &l.pauser {
		l.cooldown.Served(g.sent)
	}
	f := l.evidenceOf(k)
	doubtful := f.doubts(now, g)
	switch {
	case !rate || explained || f.chance || l.terms.pausesOnly || k.slow.Silent() && len(s.Limits) == 0:
	case alone:
		f.suspects(now, g.sent, said, l.terms.MaxPause, l.untold(), !ended)
	case isLong(said) && len(s.Limits) == 0 && !f.spared:
		f.spared = true
		f.peers.refused(now, said)
	case g.limited || f.weighs(!s.Throttled, l.good < proven):
		if k.found().cooldown.News(g.sent) {
			k.resemble(now)
		}
		f.refused(now, g.sent, learn.Refusal{Hint: said, MaxPause: l.terms.MaxPause, Doubtful: doubtful})
		if !said.Known && f.sure() && f.Crowded() && k.slow.UnderWay() > 1 {
			c.pauser().cooldown.Served(g.sent)
			return lesson{what: causeRate, found: k.found()}
		}
	}
	return l.pause(now, g, s, c, said)
}

// doubts reports whether the host may be down that refused g, and lets f ask as one asks such a host.
func (e *evidence) doubts(now instant, g *ticket) bool {
	k := g.endpoint
	e.away = nil
	e.chance = e.chance && g.limited
	if !g.limited || !k.overload.Doubtful() {
		return false
	}
	s := k.learner.scope
	e.away = absence.New(now, s.since(k.overload.Refusing()), s.came())
	return true
}

// byOneOf reports that a request to endpoint k was refused by one of several servers, each of which
// counts for itself. The request waits as long as that one says. Others do not have to.
func (l *learner) byOneOf(k *endpoint, s *headers.Signal) bool {
	for i := range s.Limits {
		if limit := &s.Limits[i]; limit.Exhausted() {
			if q := l.known(limit, k); q != nil && q.Several() {
				return true
			}
		}
	}
	return false
}

// pause begins or prolongs the pause c after the refusal of g: for as long as it asked for or, if
// it did not say, for as long as is guessed.
func (l *learner) pause(now instant, g *ticket, s *headers.Signal, c lesson, said cooldown.Hint) lesson {
	k, f, p := g.endpoint, l.evidenceOf(g.endpoint), c.pauser()
	most, inVain := l.terms.MaxPause, p.cooldown.InVain(g.sent)
	switch {
	case said.Known:
	case f.away != nil:
		most = min(most, suspectPause, f.away.Asks().Sub(now))
	case f.chance, k.overload.Suspected():
		most = min(most, suspectPause)
	}
	if f.believes() && s.Throttled {
		inVain = max(0, inVain-inVainOf)
	}
	fresh := l.good < settledIn && !f.peers.counted(g.booked) // a fleet is no herd
	news := p.cooldown.Refused(now, cooldown.Refusal{
		Sent: g.sent, Hint: said, Guess: cooldown.Guess(f.guess(now, l.account.Backlog()), most, inVain), Most: most, Fresh: fresh, Spread: l.terms.jitter(),
	})
	if !news && p.cooldown.Until().Sub(p.account.Paused) < stated.Coarse {
		return lesson{}
	}
	return c
}

// narrow returns the quota that explains a refusal if it is not that of all
// requests to its endpoint, or not known to be: then it binds those that share it, and
// nobody else has to pause. Nor has anybody if all processes count it: others may
// have spent it, and who paused for longer than its window lasts would come late to
// the next one, too.
func (l *learner) narrow(now instant, g *ticket, s *headers.Signal) (narrow *quota) {
	if l.terms.pausesOnly {
		return nil
	}
	for i := range s.Limits {
		limit := &s.Limits[i]
		q := l.known(limit, g.endpoint)
		if q == nil || q.Ignored() || !limit.Exhausted() || !g.strange() && q.Sharing.Depth() == attribution.ByKind && !q.Everywhere() {
			continue
		}
		end := instant(0)
		if s.RetryAfter.Known {
			wait, _ := cooldown.Hint{Wait: s.RetryAfter.Value}.Believed(l.terms.MaxPause)
			end = now.Add(wait)
		}
		if q.Bar(end) {
			narrow = q
		}
	}
	return narrow
}

// hintOf is what a refusal says about when to come back; whether it names the
// limit, so that other kinds of request go on; and whether a stated limit that
// is spent explains it, so that no rate has to be found.
func (l *learner) hintOf(now instant, k *endpoint, s *headers.Signal) (h cooldown.Hint, named, explained bool) {
	if s.RetryAfter.Known {
		h = cooldown.Hint{Wait: min(s.RetryAfter.Value, stated.MostWindow), Known: true, Source: "Retry-After"}
	}
	for i := range s.Limits {
		limit := &s.Limits[i]
		if d := refills(limit); d > h.Wait && !s.RetryAfter.Known { // that explains no rate: what others need is not known
			h = cooldown.Hint{Wait: d, Known: true, Source: limit.Source}
		}
		if !limit.Exhausted() {
			continue
		}
		named = named || limit.Name != "" || l.parted(limit, k)
		if !limit.Reset.Known {
			continue
		}
		q := l.known(limit, k)
		explained = explained || !l.mayBeMute(k, limit) && (q == nil || !q.Vain() && !q.other && !q.Several())
		reset := min(limit.Reset.Value, stated.MostWindow)
		supported := q != nil && q.ResetAgreed(now)
		if s.RetryAfter.Known {
			h.Supported = h.Supported || supported && (reset-h.Wait).Abs() <= 2*time.Second+h.Wait/20
			continue
		}
		if reset > h.Wait || !h.Known {
			h = cooldown.Hint{Wait: reset, Known: true, Supported: supported, Source: limit.Source}
		}
	}
	return h, named, explained
}

// refills is how long a bucket needs until it holds what the refused request
// needs, if the server said all three figures; 0: it did not, or never will.
func refills(l *headers.Limit) time.Duration {
	left, known := l.Left()
	lack := l.Cost.Value - left
	if !known || lack <= 0 || l.Refill.Value <= 0 || l.Quota.Known && l.Cost.Value > l.Quota.Value {
		return 0
	}
	return time.Duration(min(lack/l.Refill.Value, stated.MostWindow.Seconds()) * float64(time.Second))
}
