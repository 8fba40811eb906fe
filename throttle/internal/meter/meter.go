package meter

import (
	"math"
	"time"
)

// A Meter is one limit: how many units may go, and when. Its methods are
// arithmetic on its state and on now, which never steps back; its owner keeps
// them from running at the same time.
type Meter interface {
	// At is the earliest instant at which n units may be granted if nothing is
	// taken or given back until then. It is now if there is room, and Never if only
	// an event makes room, such as the end of a request. n is at most State's Most.
	At(now Instant, n int64) Instant

	// ETA is an estimate of when n units may be granted that come after ahead
	// units of others.
	ETA(now Instant, ahead, n int64) Instant

	// Regain is about how long it takes until n units that are spent may be spent again.
	Regain(n int64) time.Duration

	// Take charges n units, whether there is room or not. If held, they belong to a
	// request that awaits its answer, and Answered or Return is called later, with
	// the Token and with now as granted.
	Take(now Instant, n int64, held bool) Token

	// Answered says that the answer came to a request that holds n units. It
	// reports whether this may have made room for others.
	Answered(now Instant, n int64, m Token, granted Instant) (more bool)

	// Return gives back n units, all or some, of a grant, because the server did not
	// count them. answered is when Answered was called, or zero if it was not. For
	// units that were not held it is when they were granted.
	Return(now Instant, n int64, m Token, granted, answered Instant)

	// State describes the meter at now.
	State(now Instant) State
}

// A Token is what a meter needs to find a grant again. Its meaning is the meter's own.
type Token int64

// A State is a meter in figures.
type State struct {
	Limit   int64   // units that may be granted if none is in use
	Left    float64 // units that may be granted now
	Unspent float64 // Left without the bucket: what is left of the window
	Full    Instant // when no unit will be in use if nothing more is taken; Never: an event decides
	Most    int64   // the largest n that may be granted in one step at any time
	Idle    bool    // nothing would be lost if the meter were dropped
}

// Units is Left in whole units.
func (s State) Units() int64 {
	// A limit of math.MaxInt is rounded up to what no int64 holds.
	if x := s.Left + 1e-9; x < math.MaxInt64 {
		return int64(x)
	}
	return math.MaxInt64
}

// Requests is the unit of which every request draws one, unless its cost says how many.
const Requests = "requests"

// Exact is into how many parts Per is divided if a limit is too large to keep a date for
// each unit: units of the same part share a date. So memory is bounded, and a unit counts
// too long by at most Per/Exact, 1.6 % of the window. A log in a store keeps a date for
// each unit of limits up to Exact; a window in memory, which is cheaper, up to 2*Exact.
const Exact = 64

// A Spec is one rate: at most Limit units in any window of length Per. It is
// a throttle.Rate with its defaults resolved.
type Spec struct {
	Limit  int            // units
	Per    time.Duration  // above zero
	Burst  int            // units that may go back to back, at least 1
	Bucket bool           // it is a plain token bucket of Burst units; there is no window
	Unit   string         // never ""
	Align  *time.Location // windows start at multiples of Per of this place's clock; nil: they slide
	Even   bool           // with Align: the units left of a window are spread over the time left of it
	WarmUp time.Duration  // the rate climbs from a third to full over this time; zero: it does not
}

// PerSecond is the rate in the long run, in units per second.
func (s Spec) PerSecond() float64 { return float64(s.Limit) / s.Per.Seconds() }

// A Rate is a Spec with what is computed from it. It does not change, so all keys
// with the same rate share it.
type Rate struct {
	Spec
	Window    time.Duration // Per, or for a Bucket the time in which it fills
	perSecond float64
	grain     Instant   // see Spec.Grain
	span      Instant   // of a Bucket: see inTransit; zero: a window counts what is in transit
	shaped    bool      // a bucket says how fast units follow one another
	warm      *warmSpec // of WarmUp; nil: there is none
}

// NewRate makes a rate of s.
func NewRate(s Spec) *Rate {
	r := &Rate{Spec: s, Window: s.Per, perSecond: s.PerSecond(), grain: s.Grain()}
	r.shaped = s.WarmUp == 0 && !s.Even && (s.Bucket || s.Burst < s.Limit)
	if s.Bucket {
		r.Window = Seconds(float64(s.Burst) / r.perSecond)
		r.span = spanOf(r.perSecond, s.Burst)
	}
	if s.WarmUp > 0 {
		r.warm = newWarmSpec(r.perSecond, s.WarmUp)
	}
	return r
}

// Continues reports whether Change can turn a meter of s into one of o: both count in the
// same window with the same kind of account.
func (s *Rate) Continues(o *Rate) bool {
	place := func(r *Rate) string {
		if r.Align == nil {
			return ""
		}
		return r.Align.String()
	}
	return s.Per == o.Per && s.Bucket == o.Bucket && (s.warm == nil) == (o.warm == nil) &&
		(s.Align == nil) == (o.Align == nil) && place(s) == place(o)
}

// CostOf is how many units a cost draws. If the cost does not name the unit, that is one
// for Requests and none for any other.
func CostOf(cost map[string]int64, unit string) int64 {
	if n, ok := cost[unit]; ok {
		return n
	}
	if unit == Requests {
		return 1
	}
	return 0
}

// An Instant is a moment of the monotonic clock, in nanoseconds since its owner's clock
// was made. All arithmetic of budgets is on instants. A clock returns positive ones only,
// so zero may mean none.
type Instant int64

const (
	Never   = Instant(math.MaxInt64)       // no moment is known; later than all others
	Unknown = time.Duration(math.MaxInt64) // the length of a wait is not known; longer than all others
)

// Time maps t to a time.Time. Only differences between such times mean anything.
func (t Instant) Time() time.Time { return time.Time{}.Add(time.Duration(t)) }

// Add is t+d, or Never if that is later than an Instant can say.
func (t Instant) Add(d time.Duration) Instant {
	if s := t + Instant(d); (s < t) == (d < 0) {
		return s
	}
	return Never
}

// Sub is the time from u to t. Neither may be Never.
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

// Seconds converts seconds to whole nanoseconds, rounded up, so that no wait is too short.
// A thousandth of a nanosecond is taken for an error of rounding and dropped. The result
// is at least 1 ns, and at most half of what a Duration can hold, so that it can be added
// to an Instant.
func Seconds(seconds float64) time.Duration {
	ns := math.Ceil(seconds*1e9 - 1e-3)
	if !(ns < float64(math.MaxInt64/2)) {
		return math.MaxInt64 / 2
	}
	return max(1, time.Duration(ns))
}
