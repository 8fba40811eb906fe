package throttle

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/answer"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	askAgain    = time.Minute     // after answers last said so, when it is beyond doubt; twice as long after each refusal
	mostAsked   = 1000            // of those that wait: who asks is one of the first, as the lock is held while they are looked through
	brieflyShut = 2 * time.Second // a wait for others' limits that is not worth finding out
)

// joint is what is known of the strangers of a scope: credentials that were used
// once, as a token is that is made for its request. From the first request on they
// have one learner, so that a token per request teaches what one token for all
// does. What an answer says to one of them its own learner hears too, and that is
// whose limits it draws on once it is used again, or once strangers prove to have
// limits of their own. To find that out one at a time asks while the others have to
// wait. The domain's lock guards it.
type joint struct {
	common *learner // of strangers; nil: they are apart
	twin   *learner // own of the first, where common was that before; nil: it was not
	began  instant  // when it was taken
	proof  attribution.Strangers
	asker  *learner // of the one that asks; nil: none does
	asked  instant  // until then nobody else asks
	gap    time.Duration
	heard  instant  // when the last of them was refused
	until  instant  // when they had to wait when that one asked, or the last that was apart
	stated *learner // the last that was told what is left, while they are apart
}

// sure is the learner of a credential if it is beyond doubt that those that do not
// recur share one; nil: it is not.
func (m *learned) sure(now instant, key uint64) *learner {
	j := m.joint
	if j == nil || j.common == nil || !j.proof.Sure() || j.proof.Stale(now) || j.asks(now, 0) {
		return nil
	}
	for _, l := range m.by {
		if l.credential == key && l.recurs {
			return l
		}
	}
	return j.common
}

// shared is the learner for a request whose credential's own is l, if that is a
// stranger who shares one; nil: it does not. known says that it was asked before
// for the same request.
func (m *learned) shared(now instant, l *learner, known bool) *learner {
	j := m.joint
	l.recurs = l.recurs || l.used && !known && l.cooldown.Over()
	l.used = true
	if l == m.other || l.recurs || j == nil && len(m.by) < 2 || known && l == j.asker {
		return nil
	}
	if j == nil {
		j = new(joint)
		j.proof.Begin(now)
		m.joint = j
		if first := m.by[0]; first != l && !first.recurs && first.cooldown == nil && len(first.quotas) == 0 {
			j.common, j.began = first, now // a token made for the first request
			j.twin = newLearner(first.terms, first.scope, first.host)
			j.twin.credential, j.twin.used = first.credential, true
			m.by[0] = j.twin
		}
	}
	if j.proof.Stale(now) {
		j.proof.Begin(now)
	} else if j.common == nil && j.proof.Apart() {
		return nil
	}
	if j.common == nil {
		j.common = newLearner(l.terms, l.scope, l.host)
	}
	if l.cooldown == nil && j.asks(now, 0) {
		j.ask(now, l)
		return nil
	}
	if l.barred(now) > j.common.shut(now) {
		return nil // it was told to wait for longer
	}
	return j.common
}

// ask lets a stranger ask for itself.
func (j *joint) ask(now instant, l *learner) {
	j.asker, j.until, j.asked = l, j.common.barred(now), now.Add(max(j.gap, time.Second))
}

// next lets one of the first that wait ask, when a request that drew on k has ended, which
// still counts as under way. It reports whether one does.
func (j *joint) next(now instant, k *endpoint) bool {
	ended := 0
	if k.learner == j.common {
		ended = 1
	}
	if j.common == nil || j.proof.Sure() || !j.asks(now, ended) {
		return false
	}
	left, asks := mostAsked, false
	j.common.scope.Walk(nil, func(w *queue.Waiter) bool {
		q := w.By.(*ask)
		if asks = q.own != nil && q.learn.learner == j.common && q.own.learner.cooldown == nil; asks {
			j.ask(now, q.own.learner)
			q.learn, q.own = q.own, nil
		}
		left--
		return left > 0 && !asks
	})
	return asks
}

// asks reports whether a stranger may ask for itself: the others have long to wait, the
// longer the likelier it is that the answer is a refusal, and none of them is under way
// any more, but for ended that have just been answered. What is under way tells the same
// for nothing: the answer that says that a limit is spent is often one of the first of its
// burst.
func (j *joint) asks(now instant, ended int) bool {
	if now < j.asked || j.proof.Sure() && now < j.proof.Last().Add(j.gap) {
		return false
	}
	return j.common.shut(now) > now.Add(time.Duration(float64(brieflyShut)*j.proof.Patience())) && j.common.draining(now) <= ended
}

// draining is how many are under way that were sent before l was shut. One that takes far
// longer than usual is not among them, or nobody asked while it hangs.
func (l *learner) draining(now instant) (n int) {
	barred := l.barred(now) > now
	l.everyEndpoint(func(k *endpoint) {
		if barred || slices.ContainsFunc(k.quotas, func(q *quota) bool { return q.SpentUntil(now) > now }) {
			n += k.slow.Counted(now)
		}
	})
	return n
}

// shut is until when l gets nothing, as far as the server has said.
func (l *learner) shut(now instant) instant {
	t := l.barred(now)
	for _, q := range l.quotas {
		t = max(t, q.SpentUntil(now))
	}
	return t
}

// barred is until when a refusal has said so. A limit that is spent may let some
// pass before its reset.
func (l *learner) barred(now instant) instant {
	return max(now, l.cooldown.Sure())
}

// told is what a stranger's own learner hears of an answer that those learn from who
// share one, and what these hear of the answer to one that asked for itself.
func (k *endpoint) told(now instant, g ticket, s *headers.Signal) {
	l := k.learner
	if s == nil || !s.Throttled {
		l.cooldown.Served(g.sent)
	}
	if s == nil {
		return
	}
	g.endpoint, g.permit = k, nil
	if !l.terms.pausesOnly && len(s.Limits) > 0 {
		l.hear(now, &g, s, s.Throttled)
	}
	if s.Throttled && !answer.Futile(s) {
		l.refuse(now, &g, s, false)
	}
}

// split gives strangers limits of their own, those that wait as soon as they are asked
// what they draw on. What is under way still teaches the one that they had in common.
func (m *learned) split() {
	common := m.joint.common
	m.joint.common, common.split = nil, true
	m.joint.proof.Parted()
	common.everyEndpoint((*endpoint).leave)
}

// followSplit gives q what was learned of its own credential if the strangers with which it
// shared a learner were split.
func (q *ask) followSplit() {
	if q.own != nil && q.learn.learner.split {
		q.learn, q.own = q.own, nil
	}
}

// drewOn is the endpoint that p drew on: its own if strangers were split while it waited.
func (p *attempt) drewOn() *endpoint {
	if j := p.endpoint.learner.home(); p.own() == nil && j != nil && j.joint.owns(p.endpoint.learner, p.permit.Granted) {
		p.more().own = j.joint.twin.endpointOf(p.endpoint.key, p.permit.Granted)
	}
	if own := p.own(); own != nil && queue.Of(p.permit.Needs, &own.learner.account) != nil {
		p.endpoint, p.few.own = own, nil
	}
	p.followPart()
	return p.endpoint
}

// owns reports whether what drew on l at that time was the first, before others did.
func (j *joint) owns(l *learner, at instant) bool {
	return j != nil && j.twin != nil && l.credential == j.twin.credential && l != j.twin && at <= j.began
}

// weigh takes the answer to a stranger for or against one limit of all, before it
// is learned from. The request was one of k; one says that it drew for one of several.
func (m *learned) weigh(now, sent instant, k *endpoint, one bool, s *headers.Signal) {
	j, l := m.joint, k.learner
	refused := s != nil && s.Throttled
	switch {
	case one && l == j.common:
		j.proof.Follows(now, sent, refused)
		if s != nil && !refused {
			j.compare(now, sent, l, s.Limits)
		}
	case l == j.asker:
		j.asker, j.asked = nil, now.Add(j.gap)
		j.proof.Answered(now, sent, j.until, refused)
		if j.gap = min(2*j.gap, forgetRate); s != nil && !refused && j.common != nil {
			j.compare(now, sent, j.common, s.Limits)
		}
		if j.common != nil { // if they share a limit, it drew on that
			j.common.endpointOf(k.key, now).told(now, ticket{sent: sent}, s)
		}
	case j.common == nil && !l.recurs && !l.met:
		if sent >= j.heard && sent < j.until {
			j.proof.Answered(now, sent, j.until, refused)
		}
		if s != nil && j.stated != nil && j.stated != l {
			j.compare(now, sent, j.stated, s.Limits)
		}
		if j.stated = l; refused {
			h, _, _ := l.hintOf(now, nil, s)
			j.until = now.Add(h.Wait)
		}
	default:
		return
	}
	l.met = true
	if j.proof.Count(refused); refused {
		j.heard = now
	}
	m.settle(now, l)
}

// settle puts into effect what the evidence has come to with the answer to a
// request that drew on l.
func (m *learned) settle(now instant, l *learner) {
	j := m.joint
	switch sure := j.proof.Sure(); {
	case sure && j.gap == 0:
		j.gap, j.asked = askAgain, now.Add(askAgain)
		m.by = slices.DeleteFunc(m.by, func(o *learner) bool {
			drop := !o.recurs && !o.waited()
			if drop {
				o.everyEndpoint((*endpoint).leave)
			}
			return drop
		})
	case !sure:
		j.gap = 0
	}
	if j.common != nil && j.proof.Apart() {
		m.split()
		l.changes = true
	}
}

// compare weighs what is left for a stranger against what was for those known to l.
func (j *joint) compare(now, sent instant, l *learner, limits []headers.Limit) {
	for i := range limits {
		limit := &limits[i]
		left, ok := limit.Left()
		if !ok || !limit.Quota.Known || unitName(limit.Unit) != requests {
			continue
		}
		level := attribution.Level{Left: left, Fresh: true, UnderWay: float64(l.scope.entered - l.scope.Waiting + 1)} // with the one that this answers
		if q := l.known(limit, nil); q != nil {
			f := q.Facts(now)
			level.Fresh, level.Was, level.Gained = f.Asking, max(0, f.Left), q.Gained(now, limit.Quota.Value)
			level.New = !f.Asking && sent >= f.Basis && f.Reset.Known && f.Reset.Value.Sub(now) > brieflyShut
		}
		j.proof.Compare(now, level)
		return
	}
}
