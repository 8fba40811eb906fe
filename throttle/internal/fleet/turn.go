package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// turn is a queue's turn among those of other processes, while there are
// more of them than bookings reach ahead. Whoever asks first when the next
// booking comes within reach gets it. Who was served last asks last, and who
// was refused most often first, all within a twentieth of the reach.
//
// Where a trip to the store takes longer than one request starts after another,
// a queue that asks for one at a time gets less than its turn. It then has
// several calls on their way, as many as it takes to book a trip ahead.
type turn struct {
	missed int       // refusals since it was served, at most mostMissed
	opens  time.Time // when the next booking comes within reach
	more   int       // calls on their way while keys are short, beyond one
}

const (
	mostMissed = 8
	mostCalls  = 64 // of a queue: with trips of 50 ms more than 1000 requests a second
)

// served returns when to ask again after a booking that starts after wait.
func (t *turn) served(now time.Time, wait, reach, trip time.Duration) time.Time {
	t.missed = 0
	switch {
	case wait < trip && t.more < mostCalls-1:
		t.more++
	case wait > 2*trip && t.more > 0:
		t.more--
	}
	if wait <= reach/2 {
		return now.Add(max(0, wait-trip)) // there is room for more
	}
	return now.Add(wait + reach/20)
}

// refused returns when to ask again after a refusal: once a second in any case,
// as pauses end and others give back what they booked.
func (t *turn) refused(now time.Time, wait, reach time.Duration) time.Time {
	t.more = 0
	if !now.Before(t.opens) {
		t.missed = min(t.missed+1, mostMissed)
	}
	in := max(0, wait-reach)
	t.opens = now.Add(in)
	in += reach / 20 * time.Duration(mostMissed-t.missed) / mostMissed
	return now.Add(min(max(in, reach/200), wait, store.Ahead))
}
