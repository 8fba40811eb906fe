package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// hear learns from an answer that mentions q: to a request sent at sent, of
// cost units, refused or not, asked for being the one that asked.
func (q *quota) hear(now, sent instant, l *headers.Limit, cost float64, refused, asked bool) {
	q.roll(now)
	first := q.heard == 0
	q.heard = now
	q.note(l)
	left, ok := remaining(l)
	reset, hasReset := q.resetAt(now, l)
	if asked {
		q.asking = q.asking && refused
		if refused && q.rolled != 0 && !(q.shared.based && l.Reset.Value > cooldown.MostSlack) { // or others have spent the new window
			q.slack = min(cooldown.MostSlack, q.slack+250*time.Millisecond)
		}
	}
	if !ok {
		if hasReset {
			q.keepReset(reset, sent >= q.basis)
		}
		return
	}
	switch newer := sent >= q.basis; {
	case first:
		q.restart(now, left, reset, hasReset)
	case hasReset && q.isLater(now, reset):
		q.restart(now, left, reset, hasReset)
	case !hasReset && !q.reset.Known && newer:
		q.left, q.basis = left, now // without a reset the newest answer rules
	case q.asking || sent < q.rolled:
		// An answer out of the last window, or not the one that was asked for.
		if sent >= q.rolled {
			q.lower(now, left, reset, hasReset)
		}
	case q.flows():
		q.flow(now, left, newer, refused)
		q.setReset(reset, hasReset)
	default:
		q.window(now, sent, left, cost, refused, reset, hasReset)
	}
}

// finer is a reset stated in whole seconds, or the Retry-After beside it on an
// answer that was no refusal, if that is the same instant told more finely
// (rate-limiter-flexible). A date and the server's clock may both be rounded,
// so the two can differ by 2 s, or by 1 s if the reset was cut.
func finer(reset, after headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	over := reset.Value - after.Value
	if !reset.Known || !after.Known || reset.Value%time.Second != 0 || after.Value%time.Second == 0 ||
		over <= -time.Second || over >= 2*time.Second {
		return reset
	}
	return after
}

// note takes down what the server says about the limit itself.
func (q *quota) note(l *headers.Limit) {
	if l.Quota.Known && l.Quota.Value > 0 {
		q.size = l.Quota
	}
	if l.Window.Known && l.Window.Value > 0 && l.Window.Value <= mostWindow {
		q.key.window = l.Window.Value
	}
	q.means = l.ResetMeans
	if l.Refill.Known && l.Refill.Value > 0 {
		q.refill, q.trickles = l.Refill.Value, true
	}
	if l.ResetMeans != headers.Full || !l.Reset.Known || l.Reset.Value <= 0 || q.key.window > 0 {
		return
	}
	if left, ok := remaining(l); ok && q.size.Known && left < q.size.Value {
		q.judge.Lean(refill.Bucket)
		// Rounded up, the time until it is full makes the rate too small, never
		// too large: the largest seen is the nearest.
		if r := (q.size.Value - left) / l.Reset.Value.Seconds(); r > q.refill && q.judge.Kind() == refill.Bucket {
			q.refill = r
		}
	}
}

// remaining is what an answer says is left.
func remaining(l *headers.Limit) (float64, bool) {
	switch {
	case l.Remaining.Known:
		return l.Remaining.Value, true
	case l.Quota.Known && l.Used.Known:
		return max(0, l.Quota.Value-l.Used.Value), true
	}
	return 0, false
}

// resetAt is when the window ends, as an answer says. One that says "now" and leaves
// something means that nobody has to wait: it says nothing of the window.
func (q *quota) resetAt(now instant, l *headers.Limit) (instant, bool) {
	if left, ok := remaining(l); !l.Reset.Known || l.Reset.Value <= 0 && ok && left >= 1 {
		return 0, false
	}
	return now.Add(min(l.Reset.Value, 400*24*time.Hour) + q.slack), true
}

// isLater reports that reset belongs to a later window than the one known. The
// reset's roundings, and the time the answer took, do not make it so.
func (q *quota) isLater(now, reset instant) bool {
	if !q.reset.Known {
		return !q.asking && !q.flows() && now.Sub(q.basis) > coarse
	}
	near := max(coarse, q.key.window/20) + 500*time.Millisecond
	if !q.flows() && q.means != headers.Boundary && q.key.window > 0 {
		near = max(near, q.key.window) // it may roll
	}
	return reset.Sub(q.reset.Value) > near && !q.flows()
}

func (q *quota) restart(now instant, left float64, reset instant, hasReset bool) {
	q.left, q.basis = left, now
	q.agree, q.asking, q.asked = 0, false, false
	q.reset = headers.Opt[instant]{Value: reset, Known: hasReset}
}

// lower takes the tighter of what is known and what is said.
func (q *quota) lower(now instant, left float64, reset instant, hasReset bool) {
	if left <= q.left {
		q.left, q.basis = left, now
	}
	if hasReset && !q.reset.Known {
		q.reset = headers.Opt[instant]{Value: reset, Known: true}
	}
}

// keepReset compares a reset of the same window with the one known. If they differ by
// more than rounding, the newer one is right. If they agree, the earlier one is nearer
// the truth, because most servers round up. An answer makes the reset surer only if its
// request was sent after the last answer was heard.
func (q *quota) keepReset(reset instant, newer bool) {
	near := coarse
	if q.means == headers.Boundary {
		near = max(coarse, q.key.window/20)
	}
	switch d := reset.Sub(q.reset.Value); {
	case !q.reset.Known || d.Abs() > near && newer:
		q.reset, q.agree = headers.Opt[instant]{Value: reset, Known: true}, 0
		return
	case newer && q.means == headers.Next && q.key.window > shortWindow:
		q.reset.Value = reset // it moves on with what leaves the window
	case d < 0 && d >= -near:
		q.reset.Value = reset
	case d > near:
		return
	}
	if newer {
		q.agree++
	}
}

func (q *quota) setReset(reset instant, has bool) {
	if has {
		q.reset = headers.Opt[instant]{Value: reset, Known: true}
	}
}

// flow learns from an answer about a bucket.
func (q *quota) flow(now instant, left float64, newer, refused bool) {
	// What is said is rounded down and was true when it was said. What was
	// reckoned is kept as long as the two agree.
	switch est := q.level(now) + q.flying(); {
	case refused && left < est, est >= left+1, newer && est < left:
		q.left, q.basis = left, now
	}
}

// window learns from an answer about a window that is not over.
func (q *quota) window(now, sent instant, left, cost float64, refused bool, reset instant, hasReset bool) {
	newer := sent >= q.basis
	rise := left + cost - q.left
	if !newer || rise < 0.5 || refused {
		newer = newer || left < q.left // the server saw it after those that it said more to
		q.lower(now, left, reset, hasReset)
		if hasReset {
			q.keepReset(reset, newer)
		}
		return
	}
	if rise > max(2, q.sizeOr(0)/4) {
		// Too much for a trickle: the window ended before its rounded reset.
		q.restart(now, left, reset, hasReset)
		return
	}
	q.left, q.basis = min(left, q.left), now
}

// weigh takes an answer for or against the word of q, before it is learned from.
func (q *quota) weigh(now instant, l *headers.Limit, cost float64, refused, asked bool) {
	left, ok := remaining(l)
	if !ok {
		return
	}
	size := l.Quota
	if !size.Known {
		size = q.size
	}
	w := attribution.Word{
		Left: left, Size: q.sizeOr(0), Cost: cost, Quota: size.Known && size.Value > 0 && left <= size.Value,
		Refused: refused, Asks: asked, Holds: left < 1 || q.account.Waited(), Flows: q.flows(),
	}
	if !q.counted {
		w.Cost = 1 // at least, of something
	}
	w.Reset, _ = q.resetAt(now, l)
	q.ignored = !q.belief.Weigh(now, w)
}

// judged asks of what kind q is, before an answer is learned from. own is what of
// the units under way is the answer's.
func (q *quota) judged(now, sent instant, l *headers.Limit, cost, own float64, refused bool) {
	left, ok := remaining(l)
	if !ok || !q.counted || q.shared.tally != nil {
		return
	}
	a := refill.Answer{
		Sent: sent, Heard: now, Left: left, Cost: cost, Refused: refused, Open: max(0, q.out+q.early-own),
		Size: q.sizeOr(0), Rate: q.refill,
	}
	if l.Quota.Known {
		a.Size = l.Quota.Value
	}
	if a.Rate == 0 && a.Size > 0 && q.key.window > 0 {
		a.Rate = a.Size / q.key.window.Seconds()
	}
	if l.Reset.Known {
		a.Reset, a.Doubt = now.Add(min(l.Reset.Value, mostWindow)), coarse+now.Sub(sent)
	}
	a.Log, a.Logged = q.logged(now, sent, own)
	was := q.flows()
	if q.judge.Heard(a); q.flows() != was {
		q.left, q.basis = left, now
	}
}

func (q *quota) sizeOr(otherwise float64) float64 {
	if q.size.Known {
		return q.size.Value
	}
	return otherwise
}

// exhausted reports that a refusal was this quota's doing, as far as the
// answer tells.
func exhausted(l *headers.Limit) bool {
	if left, ok := remaining(l); ok {
		return left <= 0
	}
	return l.UsedRatio.Known && l.UsedRatio.Value >= 1
}
