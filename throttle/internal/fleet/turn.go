package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// turn is a queue's turn among those of other processes, while there are
// more of them than bookings reach ahead. Whoever asks first when the next
// booking comes within reach gets it. Who was served last asks last, and who
// was refused most often first, all within a twentieth of the reach.
type turn struct {
	missed int       // refusals since it was served, at most mostMissed
	opens  time.Time // when the next booking comes within reach
}

const mostMissed = 8

// served returns when to ask again after a booking that starts after wait.
func (t *turn) served(now time.Time, wait, reach time.Duration) time.Time {
	t.missed = 0
	if next := now.Add(wait); wait <= reach/2 {
		return next // there is room for more
	}
	return now.Add(wait + reach/20)
}

// refused returns when to ask again after a refusal: once a second in any case,
// as pauses end and others give back what they booked.
func (t *turn) refused(now time.Time, wait, reach time.Duration) time.Time {
	if !now.Before(t.opens) {
		t.missed = min(t.missed+1, mostMissed)
	}
	in := max(0, wait-reach)
	t.opens = now.Add(in)
	in += reach / 20 * time.Duration(mostMissed-t.missed) / mostMissed
	return now.Add(min(max(in, reach/200), wait, store.Ahead))
}
