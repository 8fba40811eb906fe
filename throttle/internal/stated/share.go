package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

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
