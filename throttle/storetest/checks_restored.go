package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// remembers is a booking of n by a process that has last heard r of the key.
func remembers(n int64, r store.Booked, age time.Duration, ls ...store.Limit) store.Booking {
	b := booking("k", time.Second, n, n, ls...)
	b.Draws[0].Seen = store.Seen{Standing: r.Keys[0], Age: age}
	return b
}

// healsBeforeCharging: of two processes that remember units, the one that remembers
// fewer may come first. It is not served before the other one has said what it remembers.
func healsBeforeCharging(ctx context.Context, s Setup) error {
	if s.Lose == nil {
		return nil
	}
	for _, l := range []store.Limit{windowLog("l", 10, time.Minute, 0), meter("m", 10, 0.03)} {
		first, err := want(ctx, s.Stores[0], booking("k", 0, 4, 4, l), all, 0)
		if err != nil {
			return err
		}
		last, err := want(ctx, s.Stores[1], booking("k", 0, 5, 5, l), all, 0)
		if err != nil {
			return err
		}
		s.Lose()
		s.Advance(time.Microsecond)
		if err := walk(ctx, s, []step{
			{0, 0, remembers(6, first, 0, l), refused, time.Second},
			{500 * time.Millisecond, 1, remembers(1, last, 500*time.Millisecond, l), refused, 500 * time.Millisecond},
			{500 * time.Millisecond, 0, booking("k", 0, 1, 1, l), all, 0},
		}); err != nil {
			return err
		}
		if err := fullNow(ctx, s, l); err != nil {
			return err
		}
		s.Lose()
	}
	return nil
}

// fullNow fails if k has room for one unit of l.
func fullNow(ctx context.Context, s Setup, l store.Limit) error {
	r, err := s.Stores[0].Book(ctx, booking("k", 0, 1, 1, l))
	if err == nil && r.Outcome != refused {
		return fmt.Errorf("got outcome %d of a key that is full", r.Outcome)
	}
	return err
}

// restoredHeals: processes that remember nothing, little and much come in different
// orders. In the end everything counts that was granted since the dump.
func restoredHeals(ctx context.Context, s Setup) error {
	if s.Save == nil {
		return nil
	}
	l := windowLog("l", 10, time.Minute, 0)
	for order := range 6 {
		first, err := want(ctx, s.Stores[0], booking("k", 0, 4, 4, l), all, 0)
		if err != nil {
			return err
		}
		restore := s.Save()
		s.Advance(time.Second)
		second, err := want(ctx, s.Stores[0], booking("k", 0, 3, 3, l), all, 0)
		if err != nil {
			return err
		}
		last, err := want(ctx, s.Stores[1], booking("k", 0, 2, 2, l), all, 0)
		if err != nil {
			return err
		}
		restore()
		s.Advance(time.Second)
		who := []store.Booking{booking("k", time.Second, 1, 1, l), remembers(1, first, 2*time.Second, l), remembers(1, second, time.Second, l), remembers(1, last, time.Second, l)}
		for i := range who {
			b := who[(i*(1+2*(order/4))+order)%4]
			if _, err := want(ctx, s.Stores[i%2], b, refused, time.Second); err != nil {
				return err
			}
		}
		s.Advance(time.Second)
		if _, err := want(ctx, s.Stores[order%2], booking("k", 0, 1, 1, l), all, 0); err != nil {
			return err
		}
		if err := fullNow(ctx, s, l); err != nil {
			return err
		}
		s.Advance(2 * time.Minute)
	}
	return nil
}

// restoredServes: if no process remembers more than the restored state has, bookings are
// held back for a second only.
func restoredServes(ctx context.Context, s Setup) error {
	if s.Save == nil {
		return nil
	}
	m := meter("m", 4, 0.1)
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 3, 3, m), all, 0); err != nil {
		return err
	}
	s.Save()()
	return walk(ctx, s, []step{
		{0, 0, booking("k", time.Second, 1, 1, m), refused, time.Second},
		{400 * time.Millisecond, 1, booking("k", time.Second, 1, 1, m), refused, 600 * time.Millisecond},
		{600 * time.Millisecond, 1, booking("k", 0, 1, 1, m), all, 0},
		{0, 0, booking("other", 0, 4, 4, m), all, 0},
	})
}

func restoredRefund(ctx context.Context, s Setup) error {
	if s.Save == nil {
		return nil
	}
	l := windowLog("l", 10, time.Minute, 0)
	b := booking("k", 0, 5, 5, l)
	if _, err := want(ctx, s.Stores[0], b, all, 0); err != nil {
		return err
	}
	restore := s.Save()
	r, err := want(ctx, s.Stores[0], b, all, 0)
	if err != nil {
		return err
	}
	restore()
	if err := s.Stores[0].Refund(ctx, r.Refund(b, 0, []int64{5}, nil)); err != nil {
		return err
	}
	return walk(ctx, s, []step{
		{0, 1, booking("k", 0, 1, 1, l), refused, time.Second},
		{time.Second, 1, booking("k", 0, 5, 5, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 59 * time.Second},
	})
}
