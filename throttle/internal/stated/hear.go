package stated

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

const (
	// slackStep is by how much longer resets are waited for each time that one proved too
	// early. Eight steps are MostSlack, the largest error seen at real servers.
	slackStep = 250 * time.Millisecond

	// resetPart: two resets that differ by less than this part of the window may be the
	// same. A server whose windows begin by its own clock may round to some part of them.
	resetPart = 20

	// onTheWay is by how much a reset may seem later because its answer took longer.
	onTheWay = 500 * time.Millisecond

	// agreed is how many more answers have to name the same reset to make it certain, each to
	// a request that was sent after the last answer was heard.
	agreed = 2

	// risePart is the part of a limit that does not come back bit by bit between two answers:
	// if what is left has risen by more, the window has ended.
	risePart = 4

	// wholeUnit is the least rise of what is left, as that is stated in whole units; half a
	// unit less allows for costs with fractions.
	wholeUnit = 0.5
)

// hear learns from an answer that states q, to a request that was sent at sent and cost
// cost units. asked says that it was let through to ask what there is.
func (q *Limit) hear(now, sent meter.Instant, l *headers.Limit, cost float64, refused, asked bool) {
	q.roll(now)
	defer q.tells(now, sent)
	first := q.heard == 0
	q.heard = now
	q.note(l)
	q.presumed.lasts(l.Reset.Value)
	left, ok := l.Left()
	reset, hasReset := q.resetAt(now, sent, l)
	if refused {
		q.presumed.trip = cooldown.Slowest(q.presumed.trip, now.Sub(sent))
	}
	if asked {
		q.servedEarly(sent, refused)
	}
	switch {
	case asked && refused:
		q.askedInVain(l)
	case asked:
		q.fresh.Close()
		if ok {
			q.presumed.back = headers.Opt[float64]{Value: left + max(1, cost), Known: true}
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
	case q.late(sent):
		q.hearLate(now, sent, left, reset, hasReset)
	case hasReset && q.isLater(now, reset):
		q.restart(now, left, reset, hasReset)
	case !hasReset && !q.reset.Known && newer:
		q.left, q.basis = left, now // without a reset the newest answer is right
	case q.fresh.IsOpen() || sent < q.rolled:
		// The answer is about the last window, or its request did not ask.
		if sent >= q.rolled {
			q.lower(now, left, reset, hasReset)
		}
	case q.flows():
		q.flow(now, left, newer, refused)
		q.setReset(reset, hasReset)
	default:
		q.within(now, sent, left, cost, refused, reset, hasReset)
	}
}

// askedInVain learns from the refusal of a request that asked what there is, which states l: the reset
// was taken for too early.
func (q *Limit) askedInVain(l *headers.Limit) {
	if q.presumed.early {
		q.presumed.early, q.presumed.stands = false, true
	} else if q.rolled != 0 && !(q.shared.based && l.Reset.Value > cooldown.MostSlack) { // otherwise other processes have spent the new window
		q.slack = min(cooldown.MostSlack, q.slack+slackStep)
	}
}

// note learns what the server says about the limit itself: its size, window and rate.
func (q *Limit) note(l *headers.Limit) {
	if l.Quota.Known && l.Quota.Value > 0 {
		q.size = l.Quota
	}
	if l.Window.Known && l.Window.Value > 0 && l.Window.Value <= MostWindow {
		q.window = l.Window.Value
	}
	q.means = q.meaning(l)
	if l.Refill.Known && l.Refill.Value > 0 {
		q.refill, q.trickles = l.Refill.Value, true
	}
	q.fills(l)
}

// fills learns how fast a bucket fills from a reset that is when it is full.
func (q *Limit) fills(l *headers.Limit) {
	if q.means != headers.Full || !l.Reset.Known || l.Reset.Value <= 0 || q.window > 0 {
		return
	}
	if left, ok := l.Left(); ok && q.size.Known && left < q.size.Value {
		q.judge.Lean(refill.Bucket)
		switch {
		case q.judge.Kind() != refill.Bucket:
		case l.ResetMeans == headers.Unknown:
			q.refill = q.filling.Rate()
		default:
			if off := q.filling.Heard(q.size.Value-left, l.Reset.Value); off > 0 { // its rate has changed, or it is none
				q.judge.Weigh([4]float64{refill.Bucket: off})
				q.refill = 0
			}
			// The time until it is full is rounded up, which makes the rate too small and
			// never too large. So the largest rate is the most exact one.
			q.refill = max(q.refill, refill.Rate(q.size.Value, left, l.Reset.Value))
		}
	}
}

// meaning is what the reset of l means, as the server says or as its answers show.
func (q *Limit) meaning(l *headers.Limit) headers.ResetMeans {
	if l.ResetMeans == headers.Unknown && q.filling.Rate() > 0 {
		return headers.Full
	}
	return l.ResetMeans
}

// resetAt is when the window ends, as an answer says. A reset of "now" while units are left
// means that nobody has to wait, and says nothing of the window. If the answer to a request that was
// sent at sent was late, it may say what was so then, or now. Waiting for too long would not be
// noticed, so the former is assumed until it was wrong.
func (q *Limit) resetAt(now, sent meter.Instant, l *headers.Limit) (meter.Instant, bool) {
	if left, ok := l.Left(); !l.Reset.Known || l.Reset.Value <= 0 && ok && left >= 1 {
		return 0, false
	}
	if q.late(sent) && !q.presumed.stands {
		now, q.presumed.early = sent, true
	}
	return now.Add(min(l.Reset.Value, MostWindow) + q.slack), true
}

// isLater reports that reset belongs to a later window than the known one. It allows for
// rounding, and for the time that the answer took.
func (q *Limit) isLater(now, reset meter.Instant) bool {
	if !q.reset.Known {
		return !q.fresh.IsOpen() && !q.flows() && now.Sub(q.basis) > Coarse
	}
	near := max(Coarse, q.window/resetPart) + onTheWay
	if !q.flows() && q.means != headers.Boundary && q.window > 0 {
		near = max(near, q.window) // a sliding window moves its reset by up to its length
	}
	return reset.Sub(q.reset.Value) > near && !q.flows()
}

func (q *Limit) restart(now meter.Instant, left float64, reset meter.Instant, hasReset bool) {
	q.left, q.basis = left, now
	if hasReset {
		q.names(now, reset)
	}
	q.agree, q.fresh, q.shared.anew = 0, cooldown.Question{}, now
	q.reset = headers.Opt[meter.Instant]{Value: reset, Known: hasReset}
}

// lower takes over left if it is no more than what is known, and the reset if none is known.
func (q *Limit) lower(now meter.Instant, left float64, reset meter.Instant, hasReset bool) {
	if left <= q.left {
		q.left, q.basis = left, now
	}
	if hasReset && !q.reset.Known {
		q.names(now, reset)
		q.reset = headers.Opt[meter.Instant]{Value: reset, Known: true}
	}
}

// names notes that another reset is named from now on. If it is later than the one before, which has
// not come yet, the server may always name the same wait, and have no instant in mind.
func (q *Limit) names(now, reset meter.Instant) {
	q.named = now
	q.moved = q.moved || q.reset.Value > now.Add(Coarse) && reset.Sub(q.reset.Value) > Coarse
}

// keepReset compares a reset of the same window with the known one. If they differ by
// more than rounding explains, the newer one is right. If they agree, the earlier one is more
// exact, because most servers round up. An answer confirms the reset only if its request was
// sent after the last answer was heard (newer). If resets have moved, it must also come some time
// after the reset was first named: then two answers agree only if the server has an instant in mind.
func (q *Limit) keepReset(reset meter.Instant, newer bool) {
	near := Coarse
	if q.means == headers.Boundary {
		near = max(Coarse, q.window/resetPart)
	}
	switch d := reset.Sub(q.reset.Value); {
	case !q.reset.Known || d.Abs() > near && newer:
		q.names(q.heard, reset)
		q.reset, q.agree = headers.Opt[meter.Instant]{Value: reset, Known: true}, 0
		return
	case newer && q.means == headers.Next && q.window > shortWindow:
		q.reset.Value = reset // it is when the next units leave the window, so it moves on
	case d < 0 && d >= -near:
		q.reset.Value = reset
	case d > near:
		return
	}
	if apart := q.heard.Sub(q.named) > 2*cooldown.MostSlack; newer && (apart || !q.moved) {
		q.moved = false
		q.agree++
	}
}

func (q *Limit) setReset(reset meter.Instant, has bool) {
	if has {
		q.reset = headers.Opt[meter.Instant]{Value: reset, Known: true}
	}
}

// flow learns from an answer about a bucket.
func (q *Limit) flow(now meter.Instant, left float64, newer, refused bool) {
	// What the answer says is rounded down, and was right when the request was served.
	// As long as what was computed agrees with it, that is kept.
	switch est := q.there(now); {
	case refused && left < est, est >= left+1, newer && est < left:
		q.left, q.basis = left, now
	}
}

// within learns from an answer about a window that is not over.
func (q *Limit) within(now, sent meter.Instant, left, cost float64, refused bool, reset meter.Instant, hasReset bool) {
	newer := sent >= q.basis
	rise := left + cost - q.left
	if !newer || rise < wholeUnit || refused {
		newer = newer || left < q.left // the server served it after those whose answers said more
		q.lower(now, left, reset, hasReset)
		if hasReset {
			q.keepReset(reset, newer)
		}
		return
	}
	if rise > max(2, q.sizeOr(0)/risePart) {
		// More than comes back bit by bit: the window ended before its rounded reset.
		q.restart(now, left, reset, hasReset)
		return
	}
	q.left, q.basis = min(left, q.left), now
}
