package stated

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// An Answer is what an answer that states a limit says about it.
type Answer struct {
	Sent    meter.Instant  // when the request was sent
	Limit   *headers.Limit // as it is stated
	Cost    float64        // of the request, in the limit's unit; zero if that is only a guess
	Drew    bool           // the request drew on the limit; otherwise it was not known that the limit applies to it
	Asked   bool           // the request was let through to ask what there is
	Refused bool           // the request was refused
	Like    any            // what requests have in common that are compared with one another
	Booked  *fleet.Grant   // what was booked in the Store for the request; nil: nothing
}

// Weigh weighs an answer as evidence for or against q, before Hear learns from it. It
// reports whether q is to be obeyed.
func (q *Limit) Weigh(now meter.Instant, a *Answer) (obeyed bool) {
	q.weigh(now, a)
	return !q.ignored
}

// Hear learns from an answer.
func (q *Limit) Hear(now meter.Instant, a *Answer) {
	if flows := q.judged(now, a); !q.continues(now, a) || !q.follows(now, a, flows) {
		q.learn(now, a)
	}
}

// learn is Hear once q's kind was judged.
func (q *Limit) learn(now meter.Instant, a *Answer) {
	q.roll(now)
	end := q.shared.base + int64(q.left)
	if !q.shared.based || q.fresh.IsOpen() {
		end = fleet.Unbounded
	}
	q.hear(now, a.Sent, a.Limit, a.Cost, a.Refused, a.Asked)
	if q.terms.Fleet {
		q.share(now, a.Sent, a.Limit, a.Cost, a.Booked, end)
	}
	q.trace(now, a.Sent, a.Limit, a.Cost, a.Drew, a.Refused)
}

// Passed notes that n requests are under way which did not draw on q, because it was not known
// that it applies to them. units is what one of them may cost. If q was not obeyed in between,
// some of the n did draw on q: as many as the units under way make, which are counted already.
func (q *Limit) Passed(now meter.Instant, n int, units float64) {
	if more := float64(n)*units - q.out - q.presumed.units; more > 0 {
		q.early, q.presumed.passed = q.early+more, now
		q.passed += int(math.Ceil(more / units)) // not n: those that drew do not come, and their part would stay for ever
	}
}

// Awaits reports that requests are under way that Passed counted, so that Came has something to do.
func (q *Limit) Awaits() bool { return q.passed > 0 || q.early > 0 }

// Came notes that a request ended which did not draw on q. Its cost need not be known: an
// even part of the units that Passed counted goes with each of them.
func (q *Limit) Came() {
	q.early -= q.early / float64(max(1, q.passed))
	q.passed = max(0, q.passed-1)
}

// Unbind forgets what Passed counted, because q is not obeyed any more.
func (q *Limit) Unbind() { q.early, q.passed = 0, 0 }

// Lost notes that a request of so many units, sent at sent, had no answer. They are taken to be spent
// until the next answer says whether they are.
func (q *Limit) Lost(sent meter.Instant, units float64) {
	if q.late(sent) { // they are
		return
	}
	q.left -= units
	q.shared.took(units)
}

// Bar notes a refusal of which q is the reason, which asked to stay away until end; zero:
// it did not say. It reports whether the reset of q is known.
func (q *Limit) Bar(end meter.Instant) bool {
	if end != 0 && (!q.reset.Known || q.reset.Value < end) {
		q.reset = headers.Opt[meter.Instant]{Value: end, Known: true}
	}
	if q.reset.Known {
		q.fresh.Close()
	}
	return q.reset.Known
}

// MayAsk reports whether requests of n units to w may go although q is spent, because it is
// not certain that q applies to them.
func (q *Limit) MayAsk(now meter.Instant, w attribution.Where, n float64) bool {
	if !q.Sharing.MayAsk(w, n) {
		return false
	}
	q.roll(now)
	return !q.fresh.IsOpen() && q.reset.Known && q.left < n && !q.flows()
}

// Shut is for how long requests of n units have to wait because fewer are left, as far as is
// known.
func (q *Limit) Shut(now meter.Instant, n float64) time.Duration {
	q.roll(now)
	switch {
	case q.fresh.IsOpen() || q.left >= n || q.flows():
		return 0
	case q.reset.Known:
		return q.until().Sub(now)
	}
	return q.basis.Add(q.guess()).Sub(now)
}

// Odd reports that Apart may be true of an answer that states the limit l, as is rare.
func (q *Limit) Odd(sent meter.Instant, l *headers.Limit, refused bool) bool {
	return q.differs(l) || q.left < 1 && !refused && q.Over(sent)
}

func (q *Limit) differs(l *headers.Limit) bool {
	return l.Quota.Known && q.size.Known && l.Quota.Value != q.size.Value
}

// Apart reports whether the limit l, which an answer to a request to w states, cannot be q
// although it has the name of q. That is so if no answer to w has stated q before, and either
// their sizes differ, or q had nothing left and the request was served, with as much left as
// if w had a limit of its own. sent is when the request was sent. d is the Depth that tells
// the requests of the two limits apart.
func (q *Limit) Apart(sent meter.Instant, w attribution.Where, l *headers.Limit, cost float64, refused bool) (d attribution.Depth, apart bool) {
	other, over := q.differs(l), !refused && q.Over(sent)
	d, strange := q.Sharing.Strange(w)
	if !strange {
		return 0, false
	}
	if d == attribution.ByStem && other {
		return d, true
	}
	left, ok := l.Left()
	return d, ok && over && left+cost >= max(1, q.sizeOr(2)/2)
}

// Over reports whether the server would have refused a request that was sent at sent because
// of q, as far as is known.
func (q *Limit) Over(sent meter.Instant) bool {
	return q.left < 1 && !q.fresh.IsOpen() && !q.flows() && q.reset.Known &&
		sent >= q.basis && sent < q.reset.Value.Add(-Coarse)
}

// Gained is how many units q may have got back since the last answer, at most, if it is a
// bucket of that size: at its rate, or at the rate that fills it until its reset.
func (q *Limit) Gained(now meter.Instant, size float64) float64 {
	whole := q.reset.Value.Sub(q.basis)
	if !q.reset.Known || whole <= 0 {
		return 0
	}
	lack := max(0, size-q.left)
	return min(lack, max(refill.Rate(size, q.left, whole), q.rate())*now.Sub(q.basis).Seconds())
}
