package throttle

import (
	"slices"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// unitsOf is what c costs in a unit, and whether that is counted at all.
func unitsOf(c Cost, unit string) (float64, bool) {
	unit = unitName(unit)
	if n, said := c[unit]; said || unit != requests {
		return float64(n), said
	}
	return 1, true
}

// hear gives every limit of an answer to its account. Accounts that the answer
// does not mention count on by themselves.
func (l *learner) hear(now instant, g *ticket, s *headers.Signal, refused bool) (news lesson) {
	k := g.endpoint
	if !l.states && !refused && len(s.Limits) > 0 {
		l.states = true
		if e := k.evidenceNow(); e != nil && !e.blank() { // these limits explain what was refused before
			e.forget()
		}
	}
	heard := 0
	for i := range s.Limits {
		limit := &s.Limits[i]
		if !refused && s.RetryAfter.Known {
			exact := *limit
			exact.Reset = stated.Finer(limit.Reset, s.RetryAfter)
			limit = &exact
		}
		q, isNews := l.hearLimit(now, g, limit, refused, heard)
		if isNews {
			news = lesson{what: causeQuota, quota: q}
		}
		if q != nil {
			q.like = &s.Limits[i] // the memory of the host's headers uses it again
			q.said = true
			heard++
		}
	}
	silent := false
	for _, q := range k.quotas {
		if !q.said {
			silent = true
			l.unmentioned(now, g, q, refused)
		}
	}
	for _, q := range l.quotas {
		q.said = false
	}
	if silent { // of the others the answer told
		l.forget(now, k)
	}
	return news
}

// unmentioned takes in that an answer does not state q, a limit of its endpoint.
func (l *learner) unmentioned(now instant, g *ticket, q *quota, refused bool) {
	if !refused && q.Over(g.sent) {
		l.passed(q, g.where())
	}
	if !g.bound(q) || g.strange() {
		return
	}
	units, _, _ := q.costs(g.cost)
	q.Unmentioned(now, g.asked(q), !refused, units)
	if q.Counted() && l.mute() {
		q.count(false, &l.scope.Group)
		l.changes = true
		l.partNamed(now, q)
	}
}

// hearLimit gives one limit of an answer to its account, which it returns, nil if
// there is none. So many of the answer were heard before.
func (l *learner) hearLimit(now instant, g *ticket, limit *headers.Limit, refused bool, before int) (q *quota, news bool) {
	k := g.endpoint
	q = k.again(limit, before)
	again := q != nil
	if !again {
		if q = l.meant(limit, k); q == nil {
			return nil, false
		}
	}
	sent := g.sent
	units, counted, guessed := q.costs(g.cost)
	if q.Odd(sent, limit, refused) {
		if depth, apart := q.Apart(sent, g.where(), limit, units, refused); apart {
			again = false
			l.divide(q, g.where(), depth, depth == attribution.ByStem || !q.Sharing.Several())
			if q = l.quotaOf(limit, k); q == nil {
				return nil, false
			}
		}
	}
	if refused || q.Empty() {
		q.settle(g, limit, refused)
	}
	if guessed {
		if q.Price(now, limit, refused); q.Usual() > 0 {
			units, counted = q.usually(), true
		}
	}
	counted = counted && !l.mute()
	if counted && (!q.Counted() || guessed && q.dearer()) || q.account == nil {
		l.changes = l.changes || q.Counted()
		q.count(counted, &l.scope.Group)
	}
	mark, drew := g.mark(q.account)
	a := stated.Answer{Sent: sent, Limit: limit, Drew: drew, Asked: mark&markAsks != 0, Refused: refused, Like: k, Booked: g.booked}
	if !guessed && !q.costless(k) {
		a.Cost = units
	}
	return q, l.hearAnswer(now, g, q, &a, again, units)
}

// hearAnswer gives the answer a to q, of whose units the request took so many. again says that q is
// known to bind the request's endpoint.
func (l *learner) hearAnswer(now instant, g *ticket, q *quota, a *stated.Answer, again bool, units float64) (news bool) {
	roomy := q.Heard() == 0 || !q.Empty() && !q.Asking() // one that asks does not know what there is
	news = q.Heard() == 0 || q.Asking() || q.Ignored()
	q.compare(now, a.Limit, a.Refused)
	if !again || !q.Expects(now, a) {
		if !q.Weigh(now, a) {
			l.release(q)
			news = false
		} else if !again && l.bind(now, q, g.endpoint, units) {
			l.partNamed(now, q)
		}
		q.Hear(now, a)
	}
	l.sort(q, g, a.Limit, units, a.Refused)
	if l.divided() && (!a.Refused || a.Limit.Exhausted()) {
		l.doubt(now, g.sent, q, roomy, a.Refused)
	}
	return news
}

// meant is the account of a limit that an answer to a request to endpoint k states; nil: it says
// nothing, or there is no room for one.
func (l *learner) meant(limit *headers.Limit, k *endpoint) *quota {
	if _, ok := limit.Left(); !ok && (!limit.Reset.Known || l.known(limit, k) == nil) {
		return nil // what does not say how much is left says nothing about now
	}
	return l.quotaOf(limit, k)
}

// again is known, if an answer to a request to endpoint k states the limit in the order in which
// k's were stated first, as nearly all do, and there is no other account of its name; else nil.
func (k *endpoint) again(limit *headers.Limit, before int) *quota {
	if before >= len(k.quotas) {
		return nil
	}
	q := k.quotas[before]
	if q.namesake || q.Sharing.Depth() != attribution.ByKind || !limit.Remaining.Known || q.like != limit && !q.ID.Names(limit) || q.said {
		return nil
	}
	return q
}

// known returns the account of a limit that a request to endpoint k came back with,
// or nil. Limits of one name, or without any, are one limit if they are of one
// size, or bind one endpoint; those of one answer are several.
func (l *learner) known(limit *headers.Limit, k *endpoint) (known *quota) {
	best := 0
	for _, q := range l.quotas {
		if !q.ID.Names(limit) || q.said {
			continue
		}
		near := 0
		if q.Sharing.Depth() > attribution.ByKind {
			if !q.Sharing.Binds(l.from()) {
				continue
			}
			near = 4
		}
		if slices.Contains(q.endpoints, k) {
			near += 2
		}
		if !limit.Quota.Known || !q.Size().Known || limit.Quota == q.Size() {
			near++
		}
		if near > best {
			known, best = q, near
		}
	}
	return known
}

// parted reports whether a limit that a request to endpoint k came back with has
// another account for other endpoints.
func (l *learner) parted(limit *headers.Limit, k *endpoint) bool {
	key := stated.KeyOf(limit)
	return slices.ContainsFunc(l.quotas, func(q *quota) bool {
		return q.ID == key && len(q.endpoints) > 0 && !slices.Contains(q.endpoints, k)
	})
}

// quotaOf is known, of a new account if there is room for one.
func (l *learner) quotaOf(limit *headers.Limit, k *endpoint) *quota {
	if q := l.known(limit, k); q != nil {
		return q
	}
	return l.newQuota(limit)
}

// newQuota is a new account of a limit, nil if there is no room for one. It stands apart
// because a quota takes much of a stack, and most answers state what is known.
func (l *learner) newQuota(limit *headers.Limit) *quota {
	key := stated.KeyOf(limit)
	if len(l.quotas) >= maxQuotas && !l.dropQuota() {
		return nil
	}
	q := &quota{Limit: stated.New(key, limit.Source, &l.terms.Terms), terms: l.terms}
	if l.from() != (attribution.Where{}) {
		if d := l.division(&key); d != nil {
			q.Sharing.Divide(d.depth)
		}
	}
	for _, o := range l.quotas {
		if o.ID == key {
			o.namesake, q.namesake = true, true
		}
	}
	l.quotas = append(l.quotas, q)
	return q
}

// dropQuota makes room by forgetting the account that was not heard of for
// the longest time, if it does not bind at the moment.
func (l *learner) dropQuota() bool {
	var oldest *quota
	for _, q := range l.quotas {
		if (oldest == nil || q.Heard() < oldest.Heard()) && (!q.Spent() || q.Ignored()) {
			oldest = q
		}
	}
	if oldest == nil {
		return false
	}
	l.drop(oldest)
	return true
}

func (l *learner) drop(q *quota) {
	l.quotas = slices.DeleteFunc(l.quotas, func(o *quota) bool { return o == q })
	l.dropShares(func(s *share) bool {
		return s.id == q.ID && !slices.ContainsFunc(l.quotas, func(o *quota) bool { return o.ID == q.ID })
	})
	l.release(q)
}

// release makes q bind nobody any more.
func (l *learner) release(q *quota) {
	for _, k := range q.endpoints {
		k.quotas = slices.DeleteFunc(k.quotas, func(o *quota) bool { return o == q })
		l.binds = true
		if len(k.quotas) == 0 { // else those who waited for q would go all at once
			k.slow.Unstated()
			l.host.Slow.Unstated()
		}
	}
	if q.account != nil && q.account.Waited() {
		l.changes = true
	}
	q.endpoints = nil
	q.Unbind()
}

// forget drops the accounts of k that the server has long ceased to mention.
func (l *learner) forget(now instant, k *endpoint) {
	for _, q := range slices.Backward(k.quotas) { // drop takes q out
		if q.Stale(now) {
			l.drop(q)
		}
	}
}

// bind makes q bind requests to endpoint k from now on. Those under way
// did not draw on it and may be missing from what remains; units is what one of
// them costs. It reports whether q binds all of them, and did not before.
func (l *learner) bind(now instant, q *quota, k *endpoint, units float64) (news bool) {
	if slices.Contains(q.endpoints, k) || q.costless(k) || k != l.other && !slices.Contains(l.endpoints, k) {
		return false // the last: it was forgotten while this request of it waited, as for a budget
	}
	q.endpoints = append(q.endpoints, k)
	k.quotas = append(k.quotas, q)
	if q.Sharing.Depth() > attribution.ByKind {
		return false // when it is spent, others are told
	}
	q.Passed(now, max(0, k.slow.UnderWay()-1), units)
	l.binds = true
	return true
}

func (q *quota) unbind(k *endpoint) {
	q.endpoints = slices.DeleteFunc(q.endpoints, func(o *endpoint) bool { return o == k })
}
