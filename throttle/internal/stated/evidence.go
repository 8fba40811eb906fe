package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// weigh weighs an answer as evidence for or against q, before anything is learned from it.
func (q *Limit) weigh(now meter.Instant, a *Answer) {
	l, cost := a.Limit, a.Cost
	left, ok := l.Left()
	if !ok {
		return
	}
	if !q.exact() {
		cost = 1 // at least, of something
	}
	if !a.Refused && !a.Asked && left >= 1 && !q.waited() {
		if obeyed, ok := q.belief.Adds(now, left, cost); ok {
			q.adds(now, a, left)
			q.ignored = !obeyed || q.Several()
			return
		}
	}
	size := l.Quota
	if !size.Known {
		size = q.size
	}
	w := attribution.Word{
		Left: left, Size: q.sizeOr(0), Cost: cost, Quota: size.Known && size.Value > 0 && left <= size.Value,
		Refused: a.Refused, Asks: a.Asked, Holds: left < 1 || q.waited(), Flows: q.returns(l),
	}
	w.Reset, _ = q.resetAt(now, now, l)
	q.ignored = !q.belief.Weigh(now, w)
	q.tellApart(now, a, w)
}

// adds notes an accepted answer that is no evidence that several servers state q.
func (q *Limit) adds(now meter.Instant, a *Answer, left float64) {
	if q.counters != nil {
		q.counters.Adds(now, a.Sent, a.Like, left, a.Cost)
	}
}

// tellApart finds out whether several servers state q, each of which counts for itself. While nobody
// waits it makes no difference. What processes of a fleet know by the Store is not compared, nor are
// requests to paths that may have limits of their own.
func (q *Limit) tellApart(now meter.Instant, a *Answer, w attribution.Word) {
	if !q.exact() || q.terms.Fleet || q.Sharing.Unsure() || q.counters == nil && !q.waited() {
		return
	}
	if q.counters == nil {
		q.counters = new(attribution.Counters)
	}
	w.Holds = q.level(now) < 1 && q.waited()
	if w.Reset != 0 {
		w.Reset = w.Reset.Add(-q.slack) // as the server says, and not as has proved right
	}
	q.counters.Weigh(now, a.Sent, a.Like, w, q.window, q.refill)
	q.ignored = q.ignored || q.counters.Several()
}

// judged finds out of what kind q is, before anything else is learned from an answer. It reports
// what q.flows does then.
func (q *Limit) judged(now meter.Instant, a *Answer) (flows bool) {
	was, l := q.flows(), a.Limit
	left, ok := l.Left()
	if !ok || q.shared.tally != nil {
		return was
	}
	size := q.sizeOr(0)
	if l.Quota.Known {
		size = l.Quota.Value
	}
	if left >= 1 && !a.Refused && l.ResetMeans == headers.Unknown && q.window == 0 {
		q.fillsUp(l, size-left)
	}
	if !q.exact() || q.asUsual(now, a, left, size) {
		return was
	}
	if flows = q.flows(); flows != was {
		q.left, q.basis = left, now
	}
	return flows
}

// asUsual gives the judge an answer that says that so much is left of size, zero: not known. It reports
// whether q comes back as before.
func (q *Limit) asUsual(now meter.Instant, a *Answer, left, size float64) bool {
	l := a.Limit
	own := a.Cost // how many of the units under way belong to the request of the answer
	if !a.Drew {
		own = 0
	}
	open, rate, reset := max(0, q.UnderWay()-own), q.refill, meter.Instant(0)
	if rate == 0 && size > 0 && q.window > 0 {
		rate = size / q.window.Seconds()
	}
	if l.Reset.Known {
		reset = now.Add(min(l.Reset.Value, MostWindow))
	}
	kind := q.judge.Kind()
	said := refill.Answer{
		Sent: a.Sent, Heard: now, Left: left, Cost: a.Cost, Refused: a.Refused, Open: open, Size: size, Rate: rate, Per: q.window, Reset: reset,
	}
	if l.Reset.Known {
		said.Doubt = Coarse + now.Sub(a.Sent)
	}
	if q.trail != nil {
		said.Log, said.Logged = q.logged(now, a.Sent, own), true
	}
	q.judge.Heard(&said)
	return q.judge.Kind() == kind && kind != refill.Counter
}

// fillsUp finds out whether the reset of l is when a bucket is full by which lack units are missing,
// if l does not say what it means. It does not matter what requests cost.
func (q *Limit) fillsUp(l *headers.Limit, lack float64) {
	was := q.meaning(l)
	if q.filling.Heard(lack, min(l.Reset.Value, MostWindow)); q.meaning(l) != was { // what was judged was another kind of limit
		q.judge, q.refill = refill.Judge{}, 0
	}
}
