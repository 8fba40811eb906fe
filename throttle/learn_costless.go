package throttle

import (
	"slices"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// costlessAt is after how many requests in a row, served though nothing was left before and
// after them, a kind costs nothing of a limit. Into a bucket a unit may have flowed for the
// first of them, or for the second.
const costlessAt = 3

// mostDrawing is after how many kinds that were refused for want of units all are taken to draw on
// the limit, and mostSharing how many kinds may state it: there may be dozens, and few APIs have
// one that costs nothing. Each that asks in vain is refused once.
const (
	mostDrawing = 2
	mostSharing = 4
)

// A share is what is known of a kind of request whose answers state limits of a name that others
// may spend: of Docker Hub's pulls each HEAD says how many are left, and costs none.
type share struct {
	id     stated.Key
	kind   *endpoint
	served int8 // in a row, of those that asked
	draws  bool // one was refused for want of units
}

// share is what is known of k and limits of q's name; nil: nothing.
func (q *quota) share(k *endpoint) *share {
	p := k.learner.paths
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.shares, func(s share) bool { return s.kind == k && s.id == q.ID }); i >= 0 {
		return &p.shares[i]
	}
	return nil
}

// dropShares forgets what is known of kinds or limits that are forgotten: else there would be no
// room for others, and kinds that are called no more would count as those that draw.
func (l *learner) dropShares(gone func(s *share) bool) {
	if l.paths != nil {
		l.paths.shares = slices.DeleteFunc(l.paths.shares, func(s share) bool { return gone(&s) })
	}
}

// costless reports whether requests of k cost nothing of q.
func (q *quota) costless(k *endpoint) bool {
	s := q.share(k)
	return s != nil && s.served >= costlessAt
}

// mayAsk reports whether a request of k, of n units, is to ask whether it is served although q
// has not as many left: none of k was refused for want of units yet, and others may have spent
// them.
func (q *quota) mayAsk(now instant, k *endpoint, n int64) bool {
	if !q.Counted() || q.Sharing.Common() || q.Shut(now, float64(n)) <= brieflyShut {
		return false
	}
	drawing := 0
	p := made(&k.learner.paths)
	for _, s := range p.shares {
		if s.id == q.ID && s.draws {
			drawing++
			if s.kind == k {
				return false
			}
		}
	}
	if drawing >= mostDrawing || len(p.shares) >= maxQuotas && q.share(k) == nil {
		return false
	}
	return len(q.endpoints) > 1 && len(q.endpoints) <= mostSharing || q.namesake && k.learner.mirrors(q)
}

// mirrors reports whether there is another limit of q's name and size, which may be the same one:
// two kinds, called in turn, of which one costs nothing, look as if each had a limit of its own.
func (l *learner) mirrors(q *quota) bool {
	return slices.ContainsFunc(l.quotas, func(o *quota) bool {
		return o != q && o.ID == q.ID && o.Size() == q.Size()
	})
}

// settle takes in an answer to a request that was refused or, while q is Empty, one that asked.
func (q *quota) settle(g *ticket, limit *headers.Limit, refused bool) {
	left, ok := limit.Left()
	if !ok || refused && left >= 1 || !refused && !g.asksKind() {
		return
	}
	k := g.endpoint
	l, s := k.learner, q.share(k)
	if s == nil {
		p := made(&l.paths)
		if len(p.shares) >= maxQuotas {
			return
		}
		p.shares = append(p.shares, share{id: q.ID, kind: k})
		s = &p.shares[len(p.shares)-1]
	}
	switch {
	case s.draws:
	case refused:
		s.served, s.draws, l.changes = 0, true, true
	case left >= 1: // there was some again, or k has a limit of its own
		s.served = 0
	case s.served < costlessAt:
		if s.served++; s.served == costlessAt {
			q.unbind(k)
			k.quotas = slices.DeleteFunc(k.quotas, func(o *quota) bool { return o == q })
			l.changes = true
		}
	}
}
