package fleet

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// Left estimates from the store's last answers how many of the units that cost names it would
// book at once, and how long it takes until all are there again.
func (f *Fleet) Left(keys []Key, cost map[string]int64) (units int64, full time.Duration) {
	now, left := time.Now(), float64(math.MaxInt64/2)
	for _, k := range keys {
		ls, names := storeLimits(k.Rates, f.c, now)
		s := f.recall(k.ID, len(ls)+len(flightLimits(k, 0)), now)
		for i, l := range ls {
			if meter.CostOf(cost, names[l.Unit]) == 0 {
				continue
			}
			room := s.Room(i, l)
			left = min(left, room+l.Tolerance())
			switch l.Kind {
			case store.MeterLimit:
				full = max(full, drain(l, l.Size-room))
			case store.CalendarLimit:
				full = max(full, l.Ends.Sub(now))
			}
		}
	}
	return int64(max(0, left)), full
}

// drain is how long a Meter takes to drain units.
func drain(l store.Limit, units float64) time.Duration {
	s := min(units/l.Rate, store.MaxHorizon.Seconds())
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}

// Look asks the store, charges nothing, and returns how many of the units that cost names it
// would book at once, how long it takes until all are there again, and how long cost would
// have to wait; zero: not at all. The store does not say when the units of a Log were booked,
// so the wait is its whole window. If the store cannot be asked, the answer is from what it
// last said. Look waits for the call, for Deadline at most.
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

// opens is how long a limit takes until it has short units more.
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

// ask books no units from keys, to hear how much they have left.
func (f *Fleet) ask(keys []Key) {
	now := time.Now()
	q := newQueue(f, keys) // nobody waits in it
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

// Ask asks the store how much key has left, and calls then on the call's goroutine when that is
// known. It does not wait. waits is one of key's tallies, of which a unit is booked, so that
// the other processes hear that requests wait here; nil: nothing is booked.
func (f *Fleet) Ask(key Key, waits *Tally, then func()) {
	now := time.Now()
	if !f.guard.allows(now) {
		return
	}
	f.start(func(ctx context.Context) {
		q := newQueue(f, []Key{key}) // nobody waits in it
		b := q.booking(now)
		if waits != nil {
			units := make([]int64, len(q.units))
			units[slices.Index(q.units, waits.unit)] = 1
			setCosts(&b, units, units)
		}
		if _, err := q.book(ctx, b, now); err == nil {
			then()
		}
	})
}

// Follow asks the store about key, books nothing, and calls heard when the store has answered, or
// could not be asked. It does so every AskPause until heard returns false, or Close is called. It
// does not wait.
func (f *Fleet) Follow(key Key, heard func(ok bool) (more bool)) {
	if !f.hold() {
		return
	}
	go func() {
		defer f.calls.Done()
		q := newQueue(f, []Key{key}) // nobody waits in it
		next := time.NewTicker(AskPause(f.c.Members))
		defer next.Stop()
		for more := true; more; {
			select {
			case <-f.closing:
				return
			case <-next.C:
			}
			more = heard(f.follows(q))
		}
	}()
}

// follows asks the store what q's keys have left, and reports whether it answered.
func (f *Fleet) follows(q *queue) bool {
	now := time.Now()
	if !f.guard.allows(now) {
		return false
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.patience())
	defer cancel()
	_, err := q.book(ctx, q.booking(now), now)
	return err == nil
}
