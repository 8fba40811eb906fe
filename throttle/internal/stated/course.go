package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// Nearly all answers say of a limit what follows from the one before: its window goes on, and
// the request took its units. And nearly all requests come while many units are left. This file
// finds that out at a glance, and then does what the other files would do, no more and no less.

// goesOn reports that the window that was known last is not over yet, so that roll does
// nothing, and nobody has to ask what there is.
func (q *Limit) goesOn(now meter.Instant) bool {
	return q.reset.Known && now < q.reset.Value && now < q.basis.Add(q.most()) && !q.fresh.IsOpen() && q.judge.Kind() != refill.Counter
}

// ample reports that so many units are left that n may go now, so wait is zero and has
// changed nothing. What comes back by itself does not even have to be computed.
func (q *Limit) ample(now meter.Instant, n float64) bool {
	return q.left-q.out-q.early-n >= 1 && q.goesOn(now) && q.counted && q.trail == nil && !q.terms.Fleet && !q.terms.Pace && (q.windows == 0 || !q.testing())
}

// Ample reports that so many units are left that n may go now, whoever else draws on q: so
// MayAsk is false.
func (q *Limit) Ample(now meter.Instant, n int64) bool { return q.ample(now, float64(n)) }

// continues reports that an answer is about the window that goes on, and says nothing new but how
// much is left and the reset. Then roll would do nothing: such a window is none that is tested, so q
// is ample if so much is left and requests are not paced.
func (q *Limit) continues(now meter.Instant, a *Answer) bool {
	l := a.Limit
	return !a.Refused && !a.Asked && l.Remaining.Known && l.Reset.Known && l.Reset.Value > 0 && !l.Refill.Known && q.meaning(l) == q.means &&
		(!l.Quota.Known || l.Quota == q.size) && (!l.Window.Known || l.Window.Value == q.window) &&
		q.heard != 0 && q.goesOn(now) && a.Sent >= q.rolled && !q.late(a.Sent) && (q.left-q.out-q.early >= 1 && !q.terms.Pace || !q.ripe(now)) && !q.quiet.is && !q.terms.Fleet &&
		q.trail == nil && (q.window <= 0 || q.window > shortWindow)
}

// follows learns from an answer that continues as learn does, if that takes little. Otherwise it
// reports false and has learned nothing that learn would not learn. flows is what q.flows reports.
func (q *Limit) follows(now meter.Instant, a *Answer, flows bool) bool {
	l := a.Limit
	left, reset := l.Remaining.Value, now.Add(min(l.Reset.Value, MostWindow)+q.slack)
	switch {
	case flows:
		if q.fills(l); !q.flows() { // it is no bucket after all
			return false
		}
		q.flow(now, left, a.Sent >= q.basis, false)
		q.reset.Value = reset
	case q.means == headers.Full && q.window == 0 && (q.judge.Kind() == refill.Bucket || !q.judge.Weighed()), // fills would learn something
		reset.Sub(q.reset.Value) > Coarse && q.isLater(now, reset):
		return false
	default:
		q.heard = now // for keepReset
		q.within(now, a.Sent, left, a.Cost, false, reset, true)
	}
	q.heard, q.quiet.told = now, false
	q.tells(now, a.Sent)
	q.presumed.lasts(l.Reset.Value)
	return true
}

// Expects is Weigh and Hear of an answer that continues, if nothing is in doubt about q: its
// request was not to ask, q is obeyed, and it holds nobody up. Otherwise it reports false and has
// learned nothing.
func (q *Limit) Expects(now meter.Instant, a *Answer) bool {
	left, cost := a.Limit.Remaining.Value, a.Cost
	if a.Asked || left < 1 || q.ignored || q.waited() || !q.continues(now, a) {
		return false
	}
	if !q.exact() {
		cost = 1 // as for weigh
	}
	if _, ok := q.belief.Adds(now, left, cost); !ok {
		return false
	}
	q.adds(now, a, left)
	if flows := q.judged(now, a); q.judge.Kind() == refill.Counter || !q.follows(now, a, flows) {
		q.learn(now, a)
	}
	return true
}
