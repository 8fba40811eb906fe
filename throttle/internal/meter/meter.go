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
	// taken or given back until then: now if they may be now, Never if that
	// depends on an event. No more than State's Most are asked for.
	At(now Instant, n int64) Instant

	// ETA is an estimate of when n units may be granted that come after ahead
	// units of others.
	ETA(now Instant, ahead, n int64) Instant

	// Regain is about how long it takes to have n units again once they are spent.
	Regain(n int64) time.Duration

	// Take charges n units, be there room or not. If held, they are of a request
	// that awaits its answer: Answered or Return follows. Both want to
	// know the Token and the instant of the grant.
	Take(now Instant, n int64, held bool) Token

	// Answered says that the answer came to a request that holds n units. It
	// reports whether more may be granted for it.
	Answered(now Instant, n int64, m Token, granted Instant) (more bool)

	// Return gives n units, all or some, of a grant back: the server never counted
	// them. answered is when Answered was called, or, of units that were not held,
	// when they were granted; zero: they are held still.
	Return(now Instant, n int64, m Token, granted, answered Instant)

	// State describes the meter.
	State(now Instant) State
}

// A Token is what a meter wants to know again of a grant.
type Token int64

// A State is a meter in figures.
type State struct {
	Limit   int64   // units that could be granted at once if all were idle
	Left    float64 // units that may be granted now
	Unspent float64 // left, without regard to how many may go at once
	Full    Instant // when everything will be there again; Never: when an event says so
	Most    int64   // units that can ever be granted at once
	Idle    bool    // nothing would be lost by forgetting the meter
}

// Units is how many whole units may be granted at once now.
func (s State) Units() int64 {
	// A limit of math.MaxInt is rounded up to what no int64 holds.
	if x := s.Left + 1e-9; x < math.MaxInt64 {
		return int64(x)
	}
	return math.MaxInt64
}

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

// A Rate is a Spec with what follows from it. It does not change, so all keys
// that have it share it.
type Rate struct {
	Spec
	Window    time.Duration // Per; of a bucket, in which it fills
	perSecond float64
	grain     Instant // see Spec.Grain
	span      Instant // of a bucket's units in transit; zero: a window counts them
	shaped    bool
	warm      *warmSpec // nil: none
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

// Continues reports whether a meter of s can go on as one of o: it counts in the
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
