package throttle

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A group is one or several kinds of request that share a limit which binds no others: what
// is found of it, and its pauses. It is the meter of an account on which they draw besides
// the learner's.
type group struct {
	meter.Open
	kinds    []*endpoint // at least one
	cooldown *cooldown.Cooldown
	evidence *evidence
	since    instant // when one of them was refused first, after others
	refused  bool    // the last answer to one of them was a refusal
	account  queue.Account
}

func (l *learner) newGroup() *group {
	g := &group{cooldown: new(cooldown.Cooldown), evidence: new(evidence)}
	g.account = queue.Account{Meter: g, Label: l.terms.words.group, Group: &l.scope.Group}
	return g
}

// enterGroup makes k one of g, and of no other group; nil: of none.
func (k *endpoint) enterGroup(g *group) {
	if k.group == g {
		return
	}
	if old := k.group; old != nil {
		old.kinds = slices.DeleteFunc(old.kinds, func(o *endpoint) bool { return o == k })
	}
	if k.group = g; g != nil {
		g.kinds = append(g.kinds, k)
	}
	if k.paths != nil {
		k.paths.answers.Begin(g != nil)
	}
}

func (g *group) At(now instant, _ int64) instant {
	at := g.cooldown.At(now)
	if at == never {
		return g.cooldown.Again()
	}
	return max(at, g.evidence.at(now, g.account.Queued()))
}

func (g *group) Take(now instant, _ int64, _ bool) (m meter.Token) {
	if g.cooldown.Start(now) {
		m = markAsks
	}
	return m
}

func (g *group) Return(_ instant, _ int64, m meter.Token, _, _ instant) {
	g.cooldown.Done(m&markAsks != 0)
}

func (g *group) ETA(now instant, ahead, _ int64) instant {
	at := g.cooldown.At(now)
	if at != never {
		at = g.evidence.outlook(now, at, ahead, g.account.Queued())
	}
	return at
}

func (g *group) Regain(int64) time.Duration { return g.evidence.regain() }

func (g *group) Words(now instant) string {
	if len(g.kinds) == 0 {
		return "others are to go first" // who waits for it is to be asked anew
	}
	c := cause{what: causeRate, endpoint: g.kinds[0]}
	if g.cooldown.At(now) > now {
		c.what, c.cooldown = causeCooldown, g.cooldown
	}
	return c.in(now, c.endpoint.learner)
}

// idle reports whether no pause of g's lasts; nil is idle.
func (g *group) idle(now instant) bool { return g == nil || g.cooldown.At(now) == now }

// everyGroup calls f for every group.
func (l *learner) everyGroup(f func(g *group)) {
	l.everyEndpoint(func(k *endpoint) {
		if g := k.group; g != nil && g.kinds[0] == k { // once
			f(g)
		}
	})
}

// pauses calls f for every pause that may bind k, and the account that it pauses.
func (k *endpoint) pauses(f func(c *cooldown.Cooldown, a *queue.Account)) {
	f(k.learner.cooldown, &k.learner.account)
	f(k.cooldown, &k.account)
	if k.group != nil {
		f(k.group.cooldown, &k.group.account)
	}
}

// answered takes in that a request to k was not refused for its rate that was sent at sent.
func (k *endpoint) answered(sent instant) {
	k.pauses(func(c *cooldown.Cooldown, _ *queue.Account) { c.Served(sent) })
}

// part lets the kinds have for themselves what was found: by a group that some of them are, or
// by all.
func (l *learner) part(now instant, kinds []*endpoint) {
	var g *group
	for _, k := range kinds {
		if k.group != nil && (g == nil || g.evidence.blank()) {
			g = k.group
		}
	}
	if g == nil {
		g = l.newGroup()
		g.cooldown, g.evidence = made(&l.cooldown).Part(), l.evidenceOf(nil)
		l.evidence = new(evidence)
		l.evidence.fates = g.evidence.fates
		l.evidence.Under(g.evidence.UnderWay())
	}
	under := 0
	for _, k := range kinds {
		k.enterGroup(g)
		under += k.slow.UnderWay()
	}
	g.evidence.Under(under)
	g.since, l.changes = now, true
}

// partEach lets each of the kinds have limits of its own, of which nothing is known yet.
func (l *learner) partEach(kinds []*endpoint) {
	if kinds[0].group == nil {
		made(&l.cooldown).Lift()
		l.evidenceOf(nil).forget()
	}
	for _, k := range kinds {
		k.enterGroup(l.newGroup())
		k.group.evidence.Under(k.slow.UnderWay())
	}
	l.changes = true
}

// join takes what g's kinds share for a limit of all.
func (l *learner) join(g *group) {
	for len(g.kinds) > 0 {
		g.kinds[0].enterGroup(nil)
	}
	if e := l.evidenceOf(nil); e.blank() {
		under := e.UnderWay()
		l.evidence = g.evidence
		l.evidence.Under(under)
	}
	l.changes = true
}
