package throttle

import (
	"math"
	"time"
)

// passed is the rate at which a request sent at sent was refused, and begins
// the next measurement.
func (f *finder) passed(now, sent time.Time, said hint, rtt time.Duration) float64 {
	first, ramp := f.anchor.IsZero(), f.ramp
	top := f.measure(now, rtt)
	if first { // its own pace may be that of a client with little to ask
		top = max(top, 1/firstPause(said).Seconds())
	}
	f.ramp = nil
	switch {
	case f.gauge != nil:
		top = f.gauged(sent, rtt, ramp != nil)
		f.gauge.emptied(now)
	case first && said.known && brief(now.Sub(f.began), said):
		f.gauge = newGauge(now, f.first, sent, rtt, f.total)
		f.ramp = newRamp(f.total, said, rtt)
	}
	return top
}

// firstPause is the longest pause after a first refusal. Once in that time a
// request is let through, so that is the least rate to begin with.
func firstPause(said hint) time.Duration {
	if said.known {
		return max(said.wait, time.Second) // many hints are in whole seconds
	}
	return 4 * firstGuess
}

// gauged is the rate that a refusal of a request sent at sent tells. What was
// thought before stands if it explains the refusal as well. If it is far off,
// either the server or what others do has changed, and may change again.
func (f *finder) gauged(sent time.Time, rtt time.Duration, first bool) float64 {
	top, within := f.gauge.found(sent, rtt, meanPart)
	rough := f.gauge.rough
	if f.gauge.rough = first; first {
		f.within = within
		return min(f.top, top)
	}
	least, _ := f.gauge.found(sent, rtt, 0)
	most, _ := f.gauge.found(sent, rtt, 1)
	if least <= f.top && f.top <= most {
		top, within = f.top, min(within, f.within)
	}
	if !rough && !alike(top, f.top) {
		within = max(within, 0.5)
	}
	f.within = within
	return min(max(top, min(f.rate, f.top)/2), f.rate)
}

func alike(rate, before float64) bool {
	return before > 0 && math.Abs(rate-before) <= 0.1*before
}

// cut restarts the curve below top.
func (f *finder) cut(top float64, said hint) {
	least, most := firstK, mostK
	if said.known {
		most *= 2 // to ask costs a whole pause
	}
	if alike(top, f.top) {
		least = min(most, f.k*3/2)
	}
	// At one a second, a refusal says little, and seconds are few requests.
	f.k, f.top, f.low = least, top, restartAt*top
	if top < slowRate && !said.known {
		f.k, f.low = max(least, time.Duration(min(slowK, slowSteps/top)*float64(time.Second))), slowAt*top
	}
	if said.known {
		f.low = resumeAt * top // in that pause the bucket filled
		f.saved = savedPart * max(0, min(f.gauge.size(top), top*said.wait.Seconds())-1)
	}
	if said.known && f.within > 0 {
		f.weigh(said.wait)
	}
	f.rate = f.low
	if f.ramp != nil {
		f.rate, f.saved = f.ramp.rate(0, top), 0
	}
}

// weigh sets how far below top the curve begins and how soon it goes beyond
// after a pause of wait. Looking for more costs a pause, but for what the bucket
// saves up in it: that begins to pay when as much may have been lost by not
// looking.
func (f *finder) weigh(wait time.Duration) {
	f.low = f.top * (1 - min(1-resumeAt, f.within))
	pause := min(max(wait, time.Second), time.Minute).Seconds()
	cost := max(pause/2, pause-(f.gauge.size(f.top)-1)/f.top)
	k := min(max(2*pause, 2*cost/f.within), mostPauses*pause)
	f.k = time.Duration(k * float64(time.Second))
}

// measure is the rate that was accepted, and starts the next measurement.
func (f *finder) measure(now time.Time, rtt time.Duration) float64 {
	if f.anchor.IsZero() {
		// The burst that a full bucket let pass says little: an upper bound.
		span := max(now.Sub(f.began), rtt, 10*time.Millisecond).Seconds()
		f.anchor, f.accepted = now, 0
		return max(f.total, 0.5) / span
	}
	span := now.Sub(f.anchor)
	top := f.rate
	if f.accepted >= fewest {
		// In a pause longer than the bucket takes to fill, units went to waste:
		// the truth lies between the rate with the pauses and that without.
		// Slower growth than the bucket's leaves units to waste as well: it also
		// lies between the mean and what was accepted last.
		most := f.accepted / max(span-f.held, span/8).Seconds()
		mean := math.Sqrt(most * f.accepted / span.Seconds())
		mean = (mean + max(mean, f.recently(now))) / 2
		top = min(max(mean, f.rate/2), f.rate)
	}
	// No more can have flowed in since the bucket was empty than was accepted
	// or is under way, and one that was refused.
	if open := (span - f.held).Seconds(); open > 0 && f.accepted < 2*fewest {
		top = min(top, (f.accepted+float64(f.windows.out)+1)/open)
	}
	if span >= fullEpoch && f.accepted >= fewest || span > time.Minute {
		f.anchor, f.accepted, f.held = now, 0, 0
	}
	return top
}
