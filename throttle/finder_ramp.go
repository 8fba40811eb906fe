package throttle

import "time"

const (
	rampGrowth = 3 // times e to this per second: a doubling in a quarter of one
	rampHolds  = 3 // seconds at most at a rate that was never refused

	mostFill = 5 * time.Second // a longer pause says nothing of how fast a bucket fills
)

// A ramp looks for the rate of a bucket whose size is all that is known: a
// burst was let pass and then refused, with a hint that says no more than that
// there is some rate. Every refusal may cost a second, so one more has to do: the
// rate grows manyfold per second, from twice what the bucket would need to fill
// in the pause, and the refusal that ends it tells the gauge the bucket's rate
// nearly exactly.
type ramp struct {
	first  float64 // rate
	growth float64 // per second, of its logarithm
}

func newRamp(burst float64, said hint, rtt time.Duration) *ramp {
	pause := min(max(said.wait, time.Second), mostFill)
	r := &ramp{first: 2 * max(1, burst) / pause.Seconds()}
	r.growth = min(rampGrowth, r.first/2) // by half from one start to the next, at most
	if rtt > 0 {
		r.growth = min(r.growth, 1/rtt.Seconds())
	}
	return r
}

// brief reports whether what was refused after so long was a burst. It was not
// if the ramp would begin above its rate: then there is nothing to look for, and
// what else passed is not a bucket's size.
func brief(lasted time.Duration, said hint) bool {
	return lasted < min(fullEpoch, max(said.wait, time.Second)/2)
}

// rate is what the ramp has come to after so many starts, at most top:
// exponential in time while it is used.
func (r *ramp) rate(starts int, top float64) float64 {
	return min(top, r.first+r.growth*float64(starts))
}

// over reports that the rate has been at top for so long that nothing is to be
// found any more.
func (r *ramp) over(starts int, top float64) bool {
	return r.first+r.growth*(float64(starts)-rampHolds*top) > top
}
