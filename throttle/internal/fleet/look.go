package fleet

import (
	"context"
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// Look asks the store how keys stand, and charges nothing: how many of the units
// that cost draws it would book at once, how long it takes until all are there
// again, and how long cost would have to wait; zero: not at all. Of a Log nobody
// says when its units went: the wait is its whole window then. While the store
// cannot be asked, it is as it was last heard of.
func (f *Fleet) Look(keys []Key, cost map[string]int64) (left int64, full, wait time.Duration) {
	if f.guard.allows(time.Now()) {
		f.ask(keys)
	}
	left, full = f.Left(keys, cost)
	now := time.Now()
	for _, k := range keys {
		ls, names := storeLimits(k.Rates, f.c, now)
		s := f.recall(k.ID, len(ls)+len(flightLimits(k, 0)), now)
		wait = max(wait, s.Paused-s.Age)
		for i, l := range ls {
			n := float64(meter.CostOf(cost, names[l.Unit]))
			if short := n - s.Room(i, l) - l.Tolerance(); n > 0 && short > 0 {
				wait = max(wait, opens(l, short, now))
			}
		}
	}
	return left, full, wait
}

// opens is how long a limit takes until it has as many units more.
func opens(l store.Limit, short float64, now time.Time) time.Duration {
	switch l.Kind {
	case store.CalendarLimit:
		return l.Ends.Sub(now)
	case store.LogLimit:
		if short > l.Size {
			return math.MaxInt64
		}
		return l.Per
	}
	if l.Credit >= 0 && short > l.Size+l.Credit {
		return math.MaxInt64
	}
	return drain(l, short)
}

// ask books nothing of keys, to hear how they stand.
func (f *Fleet) ask(keys []Key) {
	now := time.Now()
	q := newQueue(f, "", keys) // nobody waits in it
	heard := make(chan struct{})
	if f.start(func(ctx context.Context) {
		defer close(heard)
		ctx, cancel := context.WithTimeout(ctx, f.c.Deadline)
		defer cancel()
		q.book(ctx, q.booking(now), now)
	}) {
		<-heard
	}
}

// Ask asks the store how key stands, and calls then when it is known. No request waits for it.
func (f *Fleet) Ask(key Key, then func()) {
	now := time.Now()
	if !f.guard.allows(now) {
		return
	}
	f.start(func(ctx context.Context) {
		q := newQueue(f, "", []Key{key}) // nobody waits in it
		if _, err := q.book(ctx, q.booking(now), now); err == nil {
			then()
		}
	})
}
