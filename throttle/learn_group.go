package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A group is one or several kinds of request that share a limit which binds no others.
type group struct {
	foundLimit
	kinds   []*endpoint // at least one
	since   instant     // when one of them was refused first, after others
	refused bool        // the last answer to one of them was a refusal
}

func (l *learner) newGroup() *group {
	g := new(group)
	g.foundLimit = foundLimit{terms: l.terms, evidence: new(evidence), only: g}
	g.cooldown = new(cooldown.Cooldown)
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
		if len(old.kinds) == 0 && k.isPart() {
			k.kind().paths.kin.Add(&old.evidence.Learner)
		}
	}
	if k.group = g; g != nil {
		g.kinds = append(g.kinds, k)
	}
	if k.paths != nil {
		k.paths.answers.Begin(g != nil)
	}
}

// idle reports whether no pause of g's lasts; nil is idle.
func (g *group) idle(now instant) bool { return g == nil || !g.rests(now) }

// answered takes in that a request to k was not refused for its rate that was sent at sent.
func (k *endpoint) answered(sent instant) {
	k.pauses(func(p *pauser) { p.cooldown.Served(sent) })
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
