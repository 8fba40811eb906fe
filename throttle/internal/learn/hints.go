package learn

import "math"

// hinted is how many of the last refusals' hints are compared with what a
// candidate would have said.
const hinted = 4

// A habit is how a server says how long to wait. Each server has one, so that hints are
// weighed together: always a second says little, whatever the limit is; four waits that
// fit to the second say much.
type habit uint8

const (
	roundsUp habit = iota // to whole seconds, or says it exactly
	roundsDown
	saysOne    // second, always
	saysPeriod // however much of it is over
	saysLess   // than the wait, but half of it at least
	saysAny    // number
	habits
)

const (
	// With a fixed number for each hint that fits or not, in place of habits, stalls of
	// 3.8 s in place of 2.5 s (p90, train): windows of a minute explained waits of a second.
	outOfHabit = .03 // how likely a hint is that the habit does not explain
	byChance   = .4  // and any, if the server says any number
)

// explains reports whether a hint is what a server of that habit says when a
// candidate of period per would have to wait for wait.
func (h habit) explains(hint, wait, per, slack Instant) bool {
	d, second := hint-wait, Instant(1e9)
	switch h {
	case roundsUp:
		return d >= -slack && d <= second+slack
	case roundsDown:
		return d >= -second-slack && d <= slack
	case saysOne:
		return hint == second
	case saysPeriod:
		return hint >= per && hint < per+second
	case saysLess:
		return d <= 0 && hint >= wait/2
	}
	return false
}

// told is how likely the hints are if the candidate is the server's, as a logarithm: the
// sum over the habits that it may have.
func (p *replay) told(s *shape, size float64, r *record, t timing) float64 {
	if p.nhints == 0 {
		return 0
	}
	// Half of the servers say it as RFC 9110 has it, in whole seconds that are enough.
	by := [habits]float64{roundsUp: .5, roundsDown: .1, saysOne: .1, saysPeriod: .1, saysLess: .1, saysAny: .1}
	for i := range p.nhints {
		h := &p.hints[i]
		wait := s.ready(h.st, size, 1, h.at, r.log, t.half) - h.at
		for k := range by {
			switch {
			case habit(k) == saysAny:
				by[k] *= byChance
			case !habit(k).explains(h.hint, wait, s.per, t.slack+5e7):
				by[k] *= outOfHabit
			}
		}
	}
	sum := 0.0
	for _, x := range by {
		sum += x
	}
	return math.Log(sum)
}
