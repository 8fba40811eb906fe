package meter

import "time"

// Requests is the unit that every request draws one of if its cost says
// nothing else.
const Requests = "requests"

// Exact is how many dates a window needs at least: those of larger limits share
// dates that lie Per/Exact apart, so that memory is bounded and a unit leaves at
// most that much too late. A log in a store keeps up to Exact units one by one;
// a window in memory, which is cheaper, twice as many.
const Exact = 64

// A Spec is one rate: at most Limit units in any window of length Per. It is
// a throttle.Rate with its defaults resolved.
type Spec struct {
	Limit  int
	Per    time.Duration
	Burst  int            // units that may go back to back, at least 1
	Bucket bool           // it is a plain token bucket of Burst units; there is no window
	Unit   string         // never ""
	Align  *time.Location // windows start at multiples of Per of this place's clock; nil: they slide
	Even   bool           // with Align: what is left of a window is spread over what is left of its time
	WarmUp time.Duration  // the rate climbs from a third to full over this time; zero: it does not
}

// PerSecond is the rate in the long run.
func (s Spec) PerSecond() float64 { return float64(s.Limit) / s.Per.Seconds() }

// CostOf is how many of unit a cost draws: one request if it says nothing of
// requests, and nothing of any other unit.
func CostOf(cost map[string]int64, unit string) int64 {
	if n, ok := cost[unit]; ok {
		return n
	}
	if unit == Requests {
		return 1
	}
	return 0
}
