package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// turn says when a queue asks the store, while keys are short, so that the queues of all
// processes take turns. Bookings may reach ahead: a request may start up to reach after it was
// booked. When the store has room for one more within the reach, the first process that asks
// gets it. So a process that was just served asks late, and one that was refused often asks
// early, all within a twentieth of the reach.
//
// Nothing of a window by the clock is booked before it begins. Who is refused until then asks
// when it has begun, in the same order, and not before: to ask within the reach would be in vain.
//
// If a trip to the store takes longer than the time from one request's start to the next, a
// queue that books one at a time gets too little. It then has several calls under way, as many
// as are needed to book a trip ahead.
type turn struct {
	missed int       // refusals since it was served, at most mostMissed
	opens  time.Time // when the store will have room for one more within the reach
	more   int       // how many calls may be under way while keys are short, besides one
}

const (
	mostMissed = 8  // after so many refusals a queue asks as early as it may
	mostCalls  = 64 // calls of a queue: with trips of 50 ms they book more than 1000 requests a second
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

// refused returns when to ask again after a refusal: within store.Ahead in any case, because
// pauses may end and others give back what they booked. begins says that a window by the clock
// begins after wait.
func (t *turn) refused(now time.Time, wait, reach time.Duration, begins bool) time.Time {
	t.more = 0
	if !now.Before(t.opens) {
		t.missed = min(t.missed+1, mostMissed)
	}
	in, latest := max(0, wait-reach), wait
	if begins {
		in, latest = wait, store.Ahead
	}
	t.opens = now.Add(in)
	in += reach / 20 * time.Duration(mostMissed-t.missed) / mostMissed
	return now.Add(min(max(in, reach/200), latest, store.Ahead))
}
