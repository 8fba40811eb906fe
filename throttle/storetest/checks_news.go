package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

func refundGivesBack(ctx context.Context, s Setup) error {
	m, l := meter("m", 4, 1), windowLog("l", 5, 10*time.Second, 0)
	b := booking("k", 0, 3, 3, m, l)
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	s.Advance(2 * time.Second) // one unit of three is left in the meter, all in the log
	if err := s.Stores[0].Refund(ctx, r.Refund(b, 0, []int64{3}, nil)); err != nil {
		return err
	}
	return walk(ctx, s, []step{
		{0, 1, booking("k", 0, 4, 4, m, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 10 * time.Second},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Second},
	})
}

// lateRefund: units that drained from a meter between a booking and its refund are free
// for others already, so the refund, in one part or in two, does not give them back again.
func lateRefund(ctx context.Context, s Setup) error {
	m := meter("m", 10, 10)
	b := booking("k", 0, 10, 10, m)
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	given := make([]float64, 1)
	parts := []store.Refund{r.Refund(b, 0, []int64{4}, given), r.Refund(b, 0, []int64{6}, given)}
	s.Advance(400 * time.Millisecond)
	if _, err := want(ctx, s.Stores[1], booking("k", 0, 4, 4, m), all, 0); err != nil {
		return err
	}
	for _, f := range parts {
		if err := s.Stores[0].Refund(ctx, f); err != nil {
			return err
		}
	}
	return walk(ctx, s, []step{ // four were sent: six are left
		{0, 1, booking("k", 0, 7, 7, m), refused, 100 * time.Millisecond},
		{0, 1, booking("k", 0, 6, 6, m), all, 0},
	})
}

// refundBehind: a unit is given back after a later one was booked ahead. It must not be
// booked again, because that request would start together with the later one. Only the
// unit that was booked last can be given back in full.
func refundBehind(ctx context.Context, s Setup) error {
	m := meter("m", 1, 4)
	b := booking("k", time.Second, 1, 1, m)
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	if _, err := want(ctx, s.Stores[1], b, one, 250*time.Millisecond); err != nil {
		return err
	}
	if err := s.Stores[0].Refund(ctx, r.Refund(b, 0, []int64{1}, nil)); err != nil {
		return err
	}
	if r, err = want(ctx, s.Stores[0], b, one, 500*time.Millisecond); err != nil {
		return err
	}
	if err := s.Stores[0].Refund(ctx, r.Refund(b, 0, []int64{1}, nil)); err != nil {
		return err
	}
	_, err = want(ctx, s.Stores[1], b, one, 500*time.Millisecond)
	return err
}

func refundOfOldState(ctx context.Context, s Setup) error {
	m := meter("m", 4, 1)
	b := booking("k", 0, 4, 4, m)
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	f := r.Refund(b, 0, []int64{4}, nil)
	s.Advance(10 * time.Second) // idle: the next booking begins a new state
	if _, err := want(ctx, s.Stores[1], b, all, 0); err != nil {
		return err
	}
	if err := s.Stores[0].Refund(ctx, f); err != nil {
		return err
	}
	if err := s.Stores[0].Refund(ctx, store.Refund{Key: "unknown", Gen: 7, Limits: b.Draws[0].Limits, Units: []float64{1}, Held: []float64{1}}); err != nil {
		return fmt.Errorf("Refund of an unknown key: %w", err)
	}
	_, err = want(ctx, s.Stores[1], booking("k", 0, 1, 1, m), refused, time.Second)
	return err
}

func pauseHolds(ctx context.Context, s Setup) error {
	m := meter("m", 5, 1)
	if err := s.Stores[0].Tell(ctx, "k", store.News{Pause: 3 * time.Second}); err != nil {
		return err
	}
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 1, 1, m), refused, 3 * time.Second},
		{0, 1, booking("k", time.Second, 1, 1, m), refused, 3 * time.Second},
		{2500 * time.Millisecond, 1, booking("k", time.Second, 1, 1, m), one, 500 * time.Millisecond},
		{0, 0, booking("k", 2*time.Second, 1, 1, m), one, 1500 * time.Millisecond},
		{500 * time.Millisecond, 0, booking("k", 0, 1, 1, m), refused, 2 * time.Second},
		{0, 0, booking("other", 0, 5, 5, m), all, 0},
	})
}

func pauseLaterWins(ctx context.Context, s Setup) error {
	m := meter("m", 5, 1)
	for _, d := range []time.Duration{3 * time.Second, time.Second} {
		if err := s.Stores[0].Tell(ctx, "k", store.News{Pause: d}); err != nil {
			return err
		}
	}
	if _, err := want(ctx, s.Stores[1], booking("k", 0, 1, 1, m), refused, 3*time.Second); err != nil {
		return err
	}
	if err := s.Stores[1].Tell(ctx, "k", store.News{Pause: -1}); err != nil {
		return err
	}
	_, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, m), all, 0)
	return err
}

func stated(id string, remaining int64, reset time.Duration) store.News {
	return store.News{Stated: []store.Stated{{ID: id, Unit: "requests", Remaining: remaining, Reset: reset}}}
}

func statedBinds(ctx context.Context, s Setup) error {
	m := meter("m", 50, 50)
	if err := s.Stores[0].Tell(ctx, "k", stated("core", 3, time.Minute)); err != nil {
		return err
	}
	return walk(ctx, s, []step{
		{0, 1, booking("k", 0, 1, 2, m), all, 0},
		{0, 0, booking("k", time.Second, 1, 2, m), one, 0},
		{0, 1, booking("k", time.Hour, 1, 1, m), refused, time.Minute},
		{time.Minute, 1, booking("k", 0, 1, 20, m), all, 0},
	})
}

func statedTightens(ctx context.Context, s Setup) error {
	m := meter("m", 50, 50)
	for _, n := range []store.News{
		stated("core", 2, time.Minute), stated("core", 40, time.Minute), // late news of the same window
		stated("core", 40, 10*time.Second), // of a window that is over
		stated("search", 9, time.Minute),
	} {
		if err := s.Stores[0].Tell(ctx, "k", n); err != nil {
			return err
		}
	}
	if err := walk(ctx, s, []step{
		{0, 1, booking("k", 0, 2, 2, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Minute},
	}); err != nil {
		return err
	}
	if err := s.Stores[1].Tell(ctx, "k", stated("core", 6, 2*time.Minute)); err != nil {
		return err
	}
	return walk(ctx, s, []step{ // 7 of the other are left
		{0, 0, booking("k", 0, 6, 6, m), all, 0},
		{0, 0, booking("k", 0, 1, 1, m), refused, 2 * time.Minute},
	})
}

func heals(ctx context.Context, s Setup) error {
	if s.Lose == nil {
		return nil
	}
	m, l := meter("m", 4, 1), windowLog("l", 4, 10*time.Second, 0)
	b := booking("k", 0, 4, 4, m, l)
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	if err := s.Stores[0].Tell(ctx, "k", store.News{Pause: time.Second}); err != nil {
		return err
	}
	s.Lose()
	s.Advance(2 * time.Second)
	again := booking("k", 0, 1, 1, m, l)
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0], Age: 2 * time.Second}
	if r, err = want(ctx, s.Stores[1], again, refused, 8*time.Second); err != nil {
		return err
	}
	if r.Keys[0].Gen == again.Draws[0].Seen.Gen {
		return errors.New("a refusal does not keep what the caller remembers")
	}
	// By now others know it too, and the caller only sees it end.
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, m, l), refused, 8*time.Second); err != nil {
		return err
	}
	s.Advance(8 * time.Second)
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0], Age: 8 * time.Second}
	_, err = want(ctx, s.Stores[1], again, all, 0)
	return err
}

// healsInTime: units that a process remembers after the state was lost end about when
// they would have ended, however long ago the process last heard of them. Otherwise a
// budget whose state is lost now and then would never be free again.
func healsInTime(ctx context.Context, s Setup) error {
	if s.Lose == nil {
		return nil
	}
	l := windowLog("l", 4, 10*time.Second, 0)
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 4, 4, l), all, 0); err != nil {
		return err
	}
	s.Advance(5 * time.Second)
	again := booking("k", 0, 1, 1, l)
	r, err := want(ctx, s.Stores[0], again, refused, 5*time.Second)
	if err != nil {
		return err
	}
	s.Lose()
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0]}
	_, err = want(ctx, s.Stores[0], again, refused, 6*time.Second) // a second, as far as bookings may reach
	return err
}

func races(ctx context.Context, s Setup) error {
	const size, callers, each = 40, 8, 10
	l := windowLog("l", size, time.Hour, 0)
	var granted atomic.Int64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				r, err := s.Stores[i%len(s.Stores)].Book(ctx, booking("k", 0, 1, 1, l))
				if err != nil {
					errs[i] = err
					return
				}
				if r.Outcome == all {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := granted.Load(); got != size {
		errs = append(errs, fmt.Errorf("%d of %d racing bookings were granted, want %d", got, callers*each, size))
	}
	return errors.Join(errs...)
}

// refills: units that an operator gives back by hand are there for every process, the
// oldest of a log first. What processes remember of them does not take them away again.
func refills(ctx context.Context, s Setup) error {
	m, l := meter("m", 4, 1), windowLog("l", 5, 10*time.Second, 0)
	d := store.Limit{ID: "d", Kind: store.CalendarLimit, Size: 6, Per: time.Hour, Ends: s.Now().Truncate(time.Hour).Add(24 * time.Hour)}
	first, err := want(ctx, s.Stores[0], booking("k", 0, 2, 2, m, l, d), all, 0)
	if err != nil {
		return err
	}
	s.Advance(time.Second)
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 3, 3, m, l, d), all, 0); err != nil {
		return err
	}
	give := func(n int64) error {
		return s.Stores[0].Tell(ctx, "k", store.News{Refill: []store.Refill{
			{Kind: store.MeterLimit, ID: "m", Units: n}, {Kind: store.LogLimit, ID: "l", Units: n},
			{Kind: store.CalendarLimit, ID: "d", Units: n}, {Kind: store.MeterLimit, ID: "none", Units: n},
		}})
	}
	if err := give(3); err != nil {
		return err
	}
	seen := booking("k", 0, 4, 4, d)
	seen.Draws[0].Seen = store.Seen{Standing: first.Keys[0], Age: time.Second}
	seen.Draws[0].Seen.Levels = first.Keys[0].Levels[2:]
	if err := walk(ctx, s, []step{
		{0, 1, booking("k", 0, 4, 4, m), refused, time.Second}, // three of four
		{0, 1, booking("k", 0, 3, 3, m), all, 0},
		{0, 1, booking("k", 0, 3, 3, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 10 * time.Second}, // those of a second ago are gone
		{0, 1, seen, all, 0},
	}); err != nil {
		return err
	}
	if err := give(store.MaxAmount); err != nil {
		return err
	}
	return walk(ctx, s, []step{ // all, and no more
		{0, 1, booking("k", 0, 5, 5, m), impossible, 0},
		{0, 1, booking("k", 0, 4, 4, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Second},
		{0, 1, booking("k", 0, 5, 5, l), all, 0},
		{0, 1, booking("k", 0, 6, 6, d), all, 0},
	})
}
