package throttle

import (
	"slices"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

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
			h, _, _ := l.hintOf(now, nil, *s)
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
		m.part()
		l.changes = true
	}
}

// compare weighs what is left for a stranger against what was for those known to l.
func (j *joint) compare(now, sent instant, l *learner, limits []headers.Limit) {
	for i := range limits {
		limit := &limits[i]
		left, ok := stated.Remaining(limit)
		if !ok || !limit.Quota.Known || unitName(limit.Unit) != requests {
			continue
		}
		level := attribution.Level{Left: left, Fresh: true, UnderWay: float64(l.scope.entered - l.scope.Waiting + 1)} // with the one that this answers
		if q := l.known(limit, nil, nil); q != nil {
			f := q.Facts(now)
			level.Fresh, level.Was, level.Gained = f.Asking, max(0, f.Left), q.Gained(now, limit.Quota.Value)
			level.New = sent >= f.Basis && f.Reset.Known && f.Reset.Value.Sub(now) > brieflyShut
		}
		j.proof.Compare(now, level)
		return
	}
}
