package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
)

// weigh takes the answer to a stranger for or against one limit of all, before it
// is learned from. The request was one of k; one says that it drew for one of several.
func (m *learned) weigh(now, sent instant, k *kind, one bool, s *headers.Signal) {
	j, l := m.joint, k.learner
	refused := s != nil && s.Throttled
	switch {
	case one && l == j.common:
		j.follows(now, sent, refused)
		if s != nil && !refused {
			j.compare(now, sent, l, s.Limits)
		}
	case l == j.asker:
		j.asker, j.asked = nil, now.Add(j.gap)
		j.answered(now, sent, refused)
		if j.gap = min(2*j.gap, forgetRate); s != nil && !refused && j.common != nil {
			j.compare(now, sent, j.common, s.Limits)
		}
		if j.common != nil { // if they share a limit, it drew on that
			j.common.kindOf(k.key, now).told(now.Time(), ticket{sent: sent.Time()}, s)
		}
	case j.common == nil && !l.recurs && !l.met:
		if sent >= j.heard && sent < j.until {
			j.answered(now, sent, refused)
		}
		if s != nil && j.stated != nil && j.stated != l {
			j.compare(now, sent, j.stated, s.Limits)
		}
		if j.stated = l; refused {
			h, _, _ := l.hintOf(now.Time(), nil, *s)
			j.until = now.Add(h.wait)
		}
	default:
		return
	}
	l.met = true
	j.count(now, refused)
	m.settle(now, l)
}

// answered weighs the answer to one that went while others had to wait. If they
// share one limit it is refused.
func (j *joint) answered(now, sent instant, refused bool) {
	if refused { // however many are, half of those with limits of their own have something left
		j.add(now, max(1, min(j.surprise(), mostBits)))
	} else if sent < j.until {
		j.add(now, -j.until.Until(sent).Seconds())
	}
}

// follows weighs the answer to one that was sent before the others were held up. Of
// one limit what follows the first that is refused is refused too; one that is not
// takes back what those before it have told. Which of two that were sent at the same
// instant came first is not known, so they tell nothing of one another.
func (j *joint) follows(now, sent instant, refused bool) {
	w := &j.wave
	switch {
	case !refused:
		if sent > w.first && sent <= w.end {
			w.bits = 0
		}
		w.passed = max(w.passed, sent)
	case sent > w.end:
		j.score = j.bits()
		w.first, w.end, w.bits = sent, now, 0
	case sent > w.passed:
		w.bits, j.at = min(w.bits+j.surprise()+followed, mostBits), now
	}
}

// bits is all the evidence for one limit.
func (j *joint) bits() float64 { return min(j.score+j.wave.bits, mostJoint) }

// surprise is what a refusal tells if limits of their own are spent as often as
// strangers were refused.
func (j *joint) surprise() float64 { return math.Log2((j.first + 2) / (j.refused + 1)) }

// add adds evidence.
func (j *joint) add(now instant, bits float64) {
	j.score, j.at = max(-jointSure, min(j.score+bits, mostJoint)), now
}

// count counts a first answer.
func (j *joint) count(now instant, refused bool) {
	j.first++
	if refused {
		j.refused++
		j.heard = now
	}
	if j.first > mostFirst {
		j.first, j.refused = j.first/2, j.refused/2
	}
}

// settle puts into effect what the evidence has come to with the answer to a
// request that drew on l.
func (m *learned) settle(now instant, l *learner) {
	j := m.joint
	switch sure := j.bits() >= jointSure; {
	case sure && j.gap == 0:
		j.gap, j.asked = askAgain, now.Add(askAgain)
		m.by = slices.DeleteFunc(m.by, func(o *learner) bool {
			drop := !o.recurs && !o.waited()
			if drop {
				o.everyKind((*kind).leave)
			}
			return drop
		})
	case !sure:
		j.gap = 0
	}
	if j.common != nil && j.bits() < partAt {
		m.part()
		l.changes = true
	}
}

// compare weighs what is left for a stranger: if that goes on where it was for
// those known to l, they are one. What is left of one limit falls.
func (j *joint) compare(now, sent instant, l *learner, limits []headers.Limit) {
	for _, limit := range limits {
		left, ok := remaining(limit)
		if !ok || !limit.Quota.Known || unitName(limit.Unit) != requests {
			continue
		}
		q := l.known(limit, nil, nil)
		if q == nil {
			return
		}
		if q.roll(now.Time()); q.asking {
			return
		}
		flight := float64(l.host.slow.now + l.host.slow.old)
		was := max(0, q.left)
		switch {
		case left < was && was-left <= flight+1 && left < limit.Quota.Value-1:
			near := math.Log2(limit.Quota.Value / (2*flight + 3)) // one of so many falls no farther
			j.add(now, max(0, near)+j.order(was-left == 1, min(was, flight+1)))
		case !sent.Time().Before(q.basis) && left > was+q.gained(now.Time(), limit.Quota.Value)+flight+1 && q.reset.Known && q.reset.Value.Sub(now.Time()) > brieflyShut:
			j.add(now, -mostBits)
		}
		return
	}
}

// order weighs a fall of what is left to one of as many values. Of one limit each
// answer has one less than the last, unless they overtake one another: how often they
// do not is counted.
func (j *joint) order(byOne bool, values float64) (bits float64) {
	part := (j.steps + inOrder) / (j.falls + 1)
	if j.falls++; !byOne {
		return 0
	}
	j.steps++
	return math.Log2(part*values + 1 - part)
}

// gained is how many units a bucket of that size, full at its reset, may have gained
// since q was heard of.
func (q *quota) gained(now time.Time, size float64) float64 {
	whole := q.reset.Value.Sub(q.basis)
	if !q.reset.Known || whole <= 0 {
		return 0
	}
	return max(0, size-q.left) * min(1, now.Sub(q.basis).Seconds()/whole.Seconds())
}
