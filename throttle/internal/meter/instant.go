package meter

import (
	"math"
	"time"
)

// An Instant is a moment in nanoseconds since its clock was made, by the
// monotonic clock. All arithmetic of budgets is on instants; a clock gives out
// positive ones only, so zero may stand for none.
type Instant int64

const (
	Never   = Instant(math.MaxInt64)       // when no moment is known
	Unknown = time.Duration(math.MaxInt64) // a wait of which no length is known
)

// Time maps t to a time.Time of which only differences mean anything.
func (t Instant) Time() time.Time { return time.Time{}.Add(time.Duration(t)) }

// Add is t+d, or Never if that is later than an Instant can say.
func (t Instant) Add(d time.Duration) Instant {
	if s := t + Instant(d); (s < t) == (d < 0) {
		return s
	}
	return Never
}

// Sub is the time from u to t, which both are moments.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Until is the time from now to t, never negative; Unknown if t is Never.
func (t Instant) Until(now Instant) time.Duration {
	switch {
	case t == Never:
		return Unknown
	case t <= now:
		return 0
	}
	return time.Duration(t - now)
}

// Seconds is a time in whole nanoseconds, rounded up but for a thousandth that
// comes from rounding, at least one, and capped.
func Seconds(seconds float64) time.Duration {
	ns := math.Ceil(seconds*1e9 - 1e-3)
	if !(ns < float64(math.MaxInt64/2)) {
		return math.MaxInt64 / 2
	}
	return max(1, time.Duration(ns))
}
