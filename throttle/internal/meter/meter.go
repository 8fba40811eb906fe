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
