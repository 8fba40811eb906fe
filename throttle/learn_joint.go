package throttle

import (
	"hash/maphash"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
)

// Whether credentials share one limit is weighed by what first requests bring:
// evidence for it is positive, against it negative. A token that is new with each
// request makes nothing but first requests.
const (
	jointAt     = 6                // three new credentials that were refused, or that found others' use
	mostJoint   = 12               // so that evidence against it counts within a few answers
	refusedNew  = 2                // a new credential has hardly used anything up
	partAt      = 2                // where credentials that were joined part again
	settledGood = 3                // good answers after which a credential is not taken for another
	newsFor     = 10 * time.Second // for so long a refusal of one says something about the next
	brieflyShut = 2 * time.Second  // a wait for others' limits that is not worth finding out
)

// joint is what is known of whether the credentials of a scope share one limit.
// If so, those that are new and those seen once have one learner. The zero joint
// knows nothing. The engine's lock guards it.
type joint struct {
	score   float64
	at      instant  // of the last evidence
	common  *learner // of those that share; nil: none do
	stated  *learner // the last that was told what is left
	refused *learner // the last that was refused
	until   instant  // when its pause ends
	heard   instant  // when it was refused
	asked   instant  // until then one asks whether it is shut out too
	flow    flow     // of all that are hardly known
}

// credentialOf is the key under which a request's credential is kept: a keyed
// hash, so that no secret is. Zero: it has none.
func (t *Transport) credentialOf(r *http.Request) uint64 {
	credential := ""
	switch {
	case t.config.Credential != nil:
		credential = t.config.Credential(r)
	default:
		if h := r.Header["Authorization"]; len(h) > 0 {
			credential = whose(h[0])
		}
	}
	if credential == "" {
		return 0
	}
	return maphash.String(t.learning.seed, credential)
}

// shared is the learner for a credential that is new, if those here share one.
// Where the wait is long, one at a time asks for itself, until it is beyond doubt
// that they do.
func (m *learned) shared(now instant) *learner {
	j := m.joint
	if j == nil && len(m.by) > 0 {
		m.joint = new(joint)
	}
	if j == nil || j.common == nil {
		return nil
	}
	if now-j.at > instant(forgetRate) {
		m.part()
		return nil
	}
	if j.score < mostJoint && now >= j.asked {
		if until := j.common.shut(now); until > now.Add(brieflyShut) && until != never {
			j.asked = now.Add(time.Second) // if its answer takes longer, another asks
			return nil
		}
	}
	return j.common
}

// shut is until when the server has said that l gets nothing.
func (l *learner) shut(now instant) instant {
	t := now
	if l.hold != nil {
		t = max(t, now.Add(l.hold.until.Sub(now.Time())))
	}
	for _, q := range l.quotas {
		t = max(t, q.At(now, 1))
	}
	return t
}

// compare weighs the first answer to a credential, which k has learned from.
func (m *learned) compare(now, sent instant, k *kind, s *headers.Signal) {
	j, l := m.joint, k.learner
	if j.at != 0 && now-j.at > instant(forgetRate) {
		j.score = 0
	}
	before, first := j.score, j.common == nil
	j.asked = 0
	switch {
	case s != nil && s.Throttled:
		m.compareRefusal(now, l)
	case j.refused != nil && j.refused != l && sent >= j.heard && sent < j.until:
		j.add(now, -j.until.Until(sent).Seconds()) // it went where the other could not
	}
	if s != nil {
		m.compareLimits(now, sent, l, s.Limits)
	}
	switch {
	case j.score >= jointAt && (first || j.score > before):
		m.join(now, l)
		if first && s != nil && s.Throttled {
			j.measure(now, sent, k, *s)
		}
	case j.score < partAt && j.common != nil:
		m.part()
	}
}

func (j *joint) add(now instant, x float64) {
	j.score, j.at = max(-mostJoint, min(j.score+x, mostJoint)), now
}

// compareRefusal weighs a refusal of a credential that had not been used. Two
// that have to wait for different times have limits of their own.
func (m *learned) compareRefusal(now instant, l *learner) {
	j := m.joint
	until := l.shut(now)
	lately := j.refused != nil && now-j.heard < instant(newsFor)
	if lately && max(until, j.until) > now.Add(brieflyShut) {
		if d := time.Duration(until - j.until).Abs(); d > brieflyShut+j.until.Until(now)/10 {
			lately = false
		}
	}
	if lately || j.refused == nil || j.common != nil {
		j.add(now, refusedNew)
	} else {
		j.add(now, min(0, refusedNew-j.score)) // another row begins
	}
	j.refused, j.until, j.heard = l, until, now
}

// compareLimits weighs what is left for a credential that had not been used: if
// that goes on where another's was, it is the same. Of a small limit two may be
// alike by chance.
func (m *learned) compareLimits(now, sent instant, l *learner, limits []headers.Limit) {
	j := m.joint
	for _, limit := range limits {
		left, ok := remaining(limit)
		if !ok || !limit.Quota.Known || unitName(limit.Unit) != requests {
			continue
		}
		if ref := j.stated; ref != nil && ref != l {
			q := ref.known(limit, nil, nil)
			flight := float64(l.host.slow.now + l.host.slow.old)
			switch {
			case q == nil:
			case math.Abs(left-q.left) <= flight+1 && left < limit.Quota.Value-1:
				j.add(now, max(2, min(math.Log2(limit.Quota.Value/(2*flight+3)), 4)))
				if j.score >= jointAt {
					j.score = mostJoint // numbers that go on are sure
				}
			case left > q.left+flight+1 && q.reset.Known && q.reset.Value.Sub(now.Time()) > brieflyShut:
				j.add(now, -4)
			}
		}
		j.stated = l
		return
	}
}

// join makes l what all credentials have that are new or hardly known.
func (m *learned) join(now instant, l *learner) {
	j := m.joint
	if j.common == nil {
		j.common = l
		m.by = slices.DeleteFunc(m.by, func(o *learner) bool { return o == l })
	}
	others := float64(l.host.slow.now + l.host.slow.old)
	m.by = slices.DeleteFunc(m.by, func(o *learner) bool {
		if o.good >= settledGood {
			return false
		}
		o.into = j.common
		o.everyKind(func(k *kind) {
			j.common.kindOf(k.key, now)
			k.leave()
		})
		return true
	})
	for _, q := range j.common.quotas {
		q.early = max(q.early, others-q.out)
	}
	l.scope.asks(func(q *ask) {
		if q.learn != nil {
			q.learn = q.learn.joined(now)
		}
	})
	l.changes = true // they draw on others now
}

// measure tells the common learner at which rate it was refused: at that of all
// that now share it.
func (j *joint) measure(now, sent instant, k *kind, s headers.Signal) {
	l := j.common
	said, _, explained := l.hintOf(now.Time(), k, s)
	if explained || l.terms.pausesOnly || k.slow.silent() {
		return
	}
	said.wait, _ = believe(said, l.terms.maxPause)
	out := l.flow.out
	if l.finder != nil {
		out = l.finder.windows.out
	}
	l.finder = j.flow.finder()
	l.finder.windows.out = out
	l.finder.refuse(now.Time(), sent.Time(), said, l.host.slow.rtt, 0)
	if l.hold != nil {
		l.finder.resume(l.hold.until)
	}
}

// home is what was learned where l is one of several; nil: it is alone.
func (l *learner) home() *learned {
	if l.scope == nil {
		return nil
	}
	return l.scope.learned
}

// hardlyKnown reports whether l may yet prove to be one with others.
func (l *learner) hardlyKnown() bool {
	return l.good < settledGood && l.home() != nil && l.home().joint != nil && l.home().joint.common != l
}

// alone reports whether no other credential is known, or all are one.
func (l *learner) alone() bool {
	return l.home() == nil || l.home().joint == nil || l.home().joint.common == l
}

// part ends what join began. What is under way still teaches the common learner.
func (m *learned) part() {
	m.by = append(m.by, m.joint.common)
	m.joint = &joint{score: min(0, m.joint.score), at: m.joint.at}
}

// joined is the kind that p teaches: if its credential was joined with others
// since it went, theirs. Its places are still those of the kind it had, for which
// others may wait.
func (p *passage) joined(now instant) *kind {
	if l := p.kind.learner; l.into != nil {
		p.t.engine.Mark(&l.account)
		l.each(p.t.engine.Mark)
		p.kind = p.kind.joined(now)
	}
	return p.kind
}

// joined is the kind that stands for k since its credential was joined with others.
func (k *kind) joined(now instant) *kind {
	for k.learner.into != nil {
		k = k.learner.into.kindOf(k.key, now)
	}
	return k
}
