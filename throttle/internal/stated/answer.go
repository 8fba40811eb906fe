package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// An Answer is one that mentions a limit, as far as that is concerned.
type Answer struct {
	Sent    meter.Instant
	Limit   *headers.Limit // as it is stated
	Cost    float64        // of the request, in the limit's unit; zero if that is a guess, which proves nothing
	Drew    bool           // the request drew on the limit; else the limit was not known to bind it
	Asked   bool           // the request was let through to ask what there is
	Refused bool
	Booked  *fleet.Grant // what was booked in the Store for the request; nil: nothing
}

// Weigh takes an answer for or against the word of q, before Hear learns from it. It
// reports whether q is to be obeyed.
func (q *Limit) Weigh(now meter.Instant, a *Answer) (obeyed bool) {
	q.weigh(now, a.Limit, a.Cost, a.Refused, a.Asked)
	return !q.ignored
}

// Hear learns from an answer.
func (q *Limit) Hear(now meter.Instant, a *Answer) {
	own := a.Cost
	if !a.Drew {
		own = 0
	}
	q.judged(now, a.Sent, a.Limit, a.Cost, own, a.Refused)
	q.hear(now, a.Sent, a.Limit, a.Cost, a.Refused, a.Asked)
	if q.terms.Fleet {
		q.share(now, a.Sent, a.Limit, a.Cost, a.Booked)
	}
	q.trace(now, a.Sent, a.Limit, a.Cost, a.Drew, a.Refused)
}

// Passed notes that n requests are under way that did not draw on q, as it was not known
// to bind them. units is what one of them may cost. Some of them may have drawn on it
// before it bound nobody.
func (q *Limit) Passed(n int, units float64) {
	q.passed += n
	q.early += max(0, float64(n)*units-q.out)
}

// Came notes that a request ended that did not draw on q. What it cost is no matter:
// with the last of those that Passed told of, nothing of theirs is under way.
func (q *Limit) Came() {
	q.early -= q.early / float64(max(1, q.passed))
	q.passed = max(0, q.passed-1)
}

// Unbind notes that q binds nobody any more.
func (q *Limit) Unbind() { q.early, q.passed = 0, 0 }

// Lost notes that a request of so many units brought no answer: perhaps it was counted.
// The next answer knows.
func (q *Limit) Lost(units float64) {
	q.left -= units
	q.shared.took(units)
}

// Bar takes in a refusal that q explains, and which asked to stay away until end; zero:
// it did not say. It reports whether q says until when.
func (q *Limit) Bar(end meter.Instant) bool {
	if end != 0 && (!q.reset.Known || q.reset.Value < end) {
		q.reset = headers.Opt[meter.Instant]{Value: end, Known: true}
	}
	if q.reset.Known {
		q.fresh.Close()
	}
	return q.reset.Known
}

// MayAsk reports whether requests of n units to w may go though q is spent: it is not
// sure that they draw on it.
func (q *Limit) MayAsk(now meter.Instant, w attribution.Where, n float64) bool {
	if !q.Sharing.MayAsk(w, n) {
		return false
	}
	q.roll(now)
	return !q.fresh.IsOpen() && q.reset.Known && q.left < n && !q.flows()
}

// Apart reports whether an answer to a request to w, that was sent at sent, can
// not be of q: w was not seen with q, which had nothing left, and yet it was
// served, with as much left as of a count of its own. Or the sizes differ. d is how
// finely q's own requests are told apart then.
func (q *Limit) Apart(sent meter.Instant, w attribution.Where, l *headers.Limit, cost float64, refused bool) (d attribution.Depth, apart bool) {
	d, strange := q.Sharing.Strange(w)
	if !strange {
		return 0, false
	}
	if d == attribution.ByStem && l.Quota.Known && q.size.Known && l.Quota.Value != q.size.Value {
		return d, true
	}
	left, ok := Remaining(l)
	return d, ok && !refused && q.over(sent) && left+cost >= max(1, q.sizeOr(2)/2)
}

// over reports whether a request that was sent at sent would have been refused by
// q, as far as was known then.
func (q *Limit) over(sent meter.Instant) bool {
	return !q.fresh.IsOpen() && !q.flows() && q.left < 1 && q.reset.Known &&
		sent >= q.basis && sent < q.reset.Value.Add(-Coarse)
}

// Gained is how many units q may have gained since it was heard of, if it is a bucket of
// that size: at its rate, or at that which fills it until its reset.
func (q *Limit) Gained(now meter.Instant, size float64) float64 {
	whole := q.reset.Value.Sub(q.basis)
	if !q.reset.Known || whole <= 0 {
		return 0
	}
	lack := max(0, size-q.left)
	return min(lack, max(refill.Rate(size, q.left, whole), q.rate())*now.Sub(q.basis).Seconds())
}
