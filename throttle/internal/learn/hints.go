package learn

import "math"

// hinted is of how many refusals, the last ones, hints are compared with what a
// candidate would have said. Four are enough to tell a habit; older ones may be of another
// limit.
const hinted = 4

// A habit is the way in which a server says how long to wait. A server has one habit, so
// hints are weighed together: if a server always says a second, that is no evidence about the
// limit; but four hints that fit to the second are strong evidence.
type habit uint8

const (
	roundsUp   habit = iota // the wait, rounded up to whole seconds or exactly
	roundsDown              // the wait, rounded down to whole seconds
	saysOne                 // always a second
	saysPeriod              // the whole period, however much of it is over
	saysLess                // less than the wait, but at least half of it
	saysAny                 // any number
	habits                  // how many there are
)

// How likely hints are. In place of habits, a fixed number was tried for each hint that fits or
// does not: then waits were 3.8 s instead of 2.5 s (p90, train), because windows of a minute
// explained hints of a second.
const (
	outOfHabit = .03 // how likely a hint is that the habit does not explain
	byChance   = .4  // how likely any hint is, if the habit is saysAny
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

// told is how likely the hints are if the server has this limiter, as a logarithm: the sum
// over the habits that the server may have.
func (p *replay) told(s *shape, size float64, r *record, t timing) float64 {
	if p.nhints == 0 {
		return 0
	}
	// About half of all servers do as RFC 9110 says: whole seconds that are enough.
	by := [habits]float64{roundsUp: .5, roundsDown: .1, saysOne: .1, saysPeriod: .1, saysLess: .1, saysAny: .1}
	for i := max(0, p.nhints-hinted); i < p.nhints; i++ {
		h := &p.hints[i%hinted]
		wait := s.ready(h.st, size, h.at, r.log, t.half) - h.at
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
