package throttle

import (
	"time"
)

const (
	leastBurst = 8 // accepted at once, at least, to say something of a bucket's size
	rampGrowth = 3 // times e to this per second: a doubling in a quarter of one
	rampHolds  = 3 // seconds at most at a rate that was never refused
	mostPoints = 64
)

// A ramp looks for the rate of a bucket whose size is all that is known: a
// burst was let pass and then refused, with a hint that says no more than that
// there is some rate. Every refusal may cost a second, so one more has to do: the
// rate grows manyfold per second, from twice what the bucket would need to fill
// in the pause, and the refusal that ends it tells the bucket's rate nearly
// exactly. Its owner guards it.
type ramp struct {
	burst  float64 // the bucket's size, and what flowed in during span
	span   time.Duration
	first  float64   // rate
	growth float64   // per second, of its logarithm
	empty  time.Time // when the bucket was seen to be empty
	points []point   // of the starts, thinned out
	every  int       // starts per point
	starts int
}

// point says how many starts there were at a time.
type point struct {
	at time.Time
	n  int
}

func newRamp(now time.Time, burst float64, span time.Duration, said hint, rtt time.Duration) *ramp {
	r := &ramp{burst: burst, span: span, first: 2 * burst / max(said.wait, time.Second).Seconds(), growth: rampGrowth, empty: now, every: 1}
	if rtt > 0 {
		r.growth = min(rampGrowth, 1/rtt.Seconds())
	}
	return r
}

// brief reports whether what was refused after so long was a burst. It was not
// if the ramp would begin above its rate: then there is nothing to look for, and
// what else passed is not a bucket's size.
func brief(lasted time.Duration, said hint) bool {
	return lasted < min(fullEpoch, max(said.wait, time.Second)/2)
}

// rate is what the ramp has come to, at most top: exponential in time while it
// is used.
func (r *ramp) rate(top float64) float64 {
	return min(top, r.first+r.growth*float64(r.starts))
}

// over reports that the rate has been at top for so long that nothing is to be
// found any more.
func (r *ramp) over(top float64) bool {
	return r.first+r.growth*(float64(r.starts)-rampHolds*top) > top
}

// reset forgets the starts: the bucket has filled since.
func (r *ramp) reset() {
	if r != nil {
		r.points, r.every, r.starts = nil, 1, 0
	}
}

// start notes a start.
func (r *ramp) start(now time.Time) {
	r.starts++
	if r.starts%r.every == 0 {
		r.points = append(r.points, point{now, r.starts})
	}
	if len(r.points) == mostPoints {
		r.every *= 2
		kept := r.points[:0]
		for _, p := range r.points {
			if p.n%r.every == 0 {
				kept = append(kept, p)
			}
		}
		r.points = kept
	}
}

// found is the bucket's rate, if a request that started at sent was the first
// that it refused. Between any two moments no more can have passed than the bucket
// held and what flowed in; since it was full for the last time, exactly that.
func (r *ramp) found(sent time.Time) float64 {
	n := float64(r.starts)
	for i := len(r.points) - 1; i >= 0 && !r.points[i].at.Before(sent); i-- {
		n = float64(r.points[i].n - 1)
	}
	whole := sent.Sub(r.empty).Seconds()
	if n < 0.75*r.burst {
		return (n + 0.5) / max(whole, .001) // it had not filled
	}
	best := n / max(whole, .001)
	for _, p := range r.points {
		in, d := n-float64(p.n)+0.5-r.burst, sent.Sub(p.at)
		if in < max(4, r.burst/8) || d < r.span*3/2 {
			break
		}
		best = max(best, in/(d-r.span).Seconds())
	}
	return best
}
