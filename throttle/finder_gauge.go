package throttle

import (
	"math"
	"time"
)

const (
	mostPoints = 32
	meanPart   = 0.5     // of a unit is what a bucket holds, on average, when it refuses
	strayPart  = 1.0 / 8 // of the burst's time, and of a round trip, is how far off times may be
)

// A gauge tells the rate of a bucket by what it let pass before it refused.
// Between any two moments no more can pass than the bucket held and what flowed
// in; since it was full for the last time, exactly that. So each refusal tells
// the rate, once it is known how much the bucket holds: what it let pass before
// the very first refusal, less what flowed in meanwhile. Its owner guards it;
// none tells nothing.
type gauge struct {
	burst   float64       // let pass before the first refusal
	span    time.Duration // in that time
	late    float64       // let pass of what was sent between what was refused and when that was heard
	flight  time.Duration // in that time
	rtt     time.Duration // of a round trip, then
	refused time.Time     // when what was refused first was sent
	empty   time.Time     // when the bucket was last seen to be empty
	starts  int           // since the pause after that
	last    time.Time     // of these
	points  []point       // of these, thinned out
	every   int           // starts per point
	rough   bool          // what it told last was told by a short ramp
}

// point says how many starts there were at a time.
type point struct {
	at time.Time
	n  int
}

// newGauge begins with the first refusal, heard at now, of a request sent at
// sent, after so many answers that accepted. The first of them was heard at first:
// it may have been long under way, and the bucket was full until then but for half
// a round trip.
func newGauge(now, first, sent time.Time, rtt time.Duration, accepted float64) *gauge {
	g := &gauge{burst: accepted, rtt: rtt, refused: sent, flight: now.Sub(sent), empty: now, every: 1}
	if !first.IsZero() {
		g.span = max(0, sent.Sub(first)+rtt)
	}
	return g
}

// good notes an accepted answer: it belongs to the burst if it was sent before
// what was refused, and perhaps if it was sent before that was heard.
func (g *gauge) good(sent time.Time) {
	switch {
	case g == nil:
	case sent.Before(g.refused):
		g.burst++
	case sent.Before(g.refused.Add(g.flight)):
		g.late++
	}
}

// size is how many units the bucket holds if its rate is that; zero: not known.
// More than flowed in while the refusal was under way has overtaken what was
// refused.
func (g *gauge) size(rate float64) float64 {
	if g == nil {
		return 0
	}
	over := max(0, g.late-rate*g.flight.Seconds())
	return max(1, g.burst-rate*g.span.Seconds()+unused(rate, g.rtt)+over)
}

// unused is how much of what flows into a full bucket at that rate a slow start
// leaves unused until its starts are as many.
func unused(rate float64, rtt time.Duration) float64 {
	flight := rate * rtt.Seconds()
	if flight <= firstFlight {
		return 0
	}
	return goodPerStep * (flight*math.Log(flight/firstFlight) - flight + firstFlight)
}

// emptied notes that the bucket was empty at now.
func (g *gauge) emptied(now time.Time) {
	g.empty = now
	g.reset()
}

// reset forgets the starts: the bucket has filled since.
func (g *gauge) reset() {
	if g != nil {
		g.points, g.starts, g.every = g.points[:0], 0, 1
	}
}

// start notes a start.
func (g *gauge) start(now time.Time) {
	if g == nil {
		return
	}
	if g.starts++; (g.starts-1)%g.every == 0 {
		g.points = append(g.points, point{now, g.starts})
	}
	g.last = now
	if len(g.points) < mostPoints {
		return
	}
	for i := range mostPoints / 2 {
		g.points[i] = g.points[2*i]
	}
	g.points, g.every = g.points[:mostPoints/2], 2*g.every
}

// before is how many starts there were before the one at at.
func (g *gauge) before(at time.Time) float64 {
	next := point{g.last, g.starts}
	for i := len(g.points) - 1; i >= 0; i-- {
		p := g.points[i]
		if p.at.Before(at) { // so next is later than p
			part := at.Sub(p.at).Seconds() / next.at.Sub(p.at).Seconds()
			return float64(p.n) + min(1, part)*float64(next.n-p.n) - 1
		}
		next = p
	}
	return 0
}

// found is the bucket's rate, if a request that started at sent was the first
// that it refused, and it held that part of a unit then; and what part of the rate
// that may be off, rtt being the time of a round trip.
func (g *gauge) found(sent time.Time, rtt time.Duration, part float64) (rate, within float64) {
	n, holds := g.before(sent), max(1, g.burst)
	in := n // units that flowed in
	rate = (in + part) / max(sent.Sub(g.empty).Seconds(), .001)
	if n >= holds { // else it was not full since it was empty
		in += part - holds
	}
	for _, p := range g.points {
		passed, d := n-float64(p.n)+1+part, sent.Sub(p.at)
		if passed < holds+part || d < max(g.span*3/2, 2*rtt) {
			break // too near to say something
		}
		r := (passed - holds) / (d - g.span).Seconds()
		for range 4 { // what it holds and the rate tell each other
			r = (passed - g.size(r)) / d.Seconds()
		}
		if r > rate {
			rate, in = r, passed-holds
		}
	}
	off := meanPart + strayPart*rate*(g.span+rtt).Seconds()
	return rate, off / max(in, .001)
}
