package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Some of what a request waits for is certain: a configured budget, a pause by
// hand, a wait or a reset that the server stated. The rest was found or guessed:
// the rate that refusals show, pauses without a hint, what a host bears at a
// time. Estimates are made of both. Only the certain part refuses anybody; for
// the rest a request waits until its time is really over, as a better estimate
// may come.

// bulk is the shortest wait for which all who wait are looked through, when an
// account turns out to be short for so long. Those whose time is up sooner hear
// of it by their own clock, at most so much later.
const bulk = time.Second

// certain is when draws may be granted at the earliest, as far as that is
// certain, and the account that this is due to, nil if that is now. Those that
// are ahead in line count if q has still to queue.
func certain(now instant, q *ask, draws []draw, queue bool) (t instant, bound *account) {
	from := now
	pause := func(a *account) {
		if a.sure > from {
			from, bound = a.sure, a
		}
	}
	pause(&q.scope.gate)
	if q.host != nil {
		pause(&q.host.gate)
	}
	for i := range draws {
		if draws[i].n != 0 && !q.doubts(draws[i].a) {
			pause(draws[i].a)
		}
	}
	if q.own != nil {
		if u := q.own.learner.barred(now); u > from {
			from, bound = u, &q.learn.learner.account
		}
	}
	t = from
	for i := range draws {
		d := &draws[i]
		if q.doubts(d.a) {
			continue
		}
		m, ok := d.a.meter.(interface {
			Sure(now, from instant, ahead, n int64) instant
		})
		if d.n == 0 || !ok {
			continue
		}
		var ahead int64
		if l := d.a.line; l != nil && queue {
			ahead = l.ahead(q)
		}
		if u := m.Sure(now, from, ahead, d.n); u > t && u != never {
			t, bound = u, d.a
		}
	}
	return t, bound
}

// doubts reports whether a is what others were told, who may not share it with q.
func (q *ask) doubts(a *account) bool {
	return q.own != nil && a.terms.spec == nil && (q.solo == nil || a != &q.solo.account)
}

// sure is when the server has stated that there will be n units more, after those
// of ahead. How a quota flows or slides without the server's word, and by how much
// resets have proved too early, was found.
func (q *quota) Sure(now, _ instant, ahead, n int64) instant {
	t := now.Time()
	q.roll(t)
	cost := float64(n)
	if q.size.Known {
		cost = min(cost, max(1, q.size.Value))
	}
	lack := float64(ahead) + cost - q.level(t)
	if q.sharing.unsure() {
		lack = cost - q.left // those under way or ahead may draw on others
	}
	if !q.counted {
		lack = 1 - q.left
	}
	switch {
	case q.asking || lack <= 1e-9:
		return now
	case q.flows && q.refill > 0 && q.trickles:
		most := q.basis.Add(q.terms.maxPause).Sub(t)
		return now.Add(max(0, min(meter.Seconds(lack/q.refill), most)))
	case q.flows || !q.reset.Known:
		return now
	}
	d := q.until().Sub(t) - q.slack
	if q.counted {
		d = min(d, q.trailed(t, cost))
	}
	return now.Add(max(0, d))
}

// recheck refuses those of s whose wait certainly cannot end in time any more,
// even if nobody else waited.
func (e *engine) recheck(now instant, s *scope) {
	for w := s.waiters; w != nil; {
		next := w.next
		e.doom(now, w)
		w = next
	}
	e.run(now)
}

// doom refuses w if it certainly cannot be granted in time.
func (e *engine) doom(now instant, w *waiter) bool {
	t, a := certain(now, &w.ask, w.draws, false)
	if t <= w.ends() {
		return false
	}
	e.refuse(now, w, w.late(now, a, t))
	return true
}

// ends is when w's wait ends without a grant.
func (w *waiter) ends() instant { return min(w.expires, w.deadline) }

// sweep is recheck for those in line for an account that is short for w, the
// pick, for long. It reports whether somebody was refused.
func (e *engine) sweep(now instant, l *line, w *waiter) (refused bool) {
	t, _ := certain(now, &w.ask, w.draws, false)
	if t < now.Add(bulk) || t <= l.first {
		return false
	}
	var all []*waiter
	for _, c := range l.classes {
		for _, k := range c.all.a {
			all = append(all, k.w)
		}
	}
	first := never
	for _, w := range all {
		if e.doom(now, w) {
			refused = true
		} else {
			first = min(first, w.ends())
		}
	}
	l.first = first
	return refused
}
