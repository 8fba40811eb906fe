package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const (
	refused    = store.Refused
	one        = store.BookedOne
	all        = store.BookedAll
	impossible = store.Impossible
)

func meterWaits(ctx context.Context, s Setup) error {
	m := meter("m", 2, 10)
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 1, 1, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), all, 0},
		{0, 0, booking("k", 0, 1, 1, m), refused, 100 * time.Millisecond},
		{40 * time.Millisecond, 1, booking("k", 0, 1, 1, m), refused, 60 * time.Millisecond},
		{0, 1, booking("other", 0, 2, 2, m), all, 0},
	})
}

func waitIsEnough(ctx context.Context, s Setup) error {
	m := meter("m", 3, 7) // 1/7 s is no round number of microseconds
	for i := range 50 {
		r, err := s.Stores[i%2].Book(ctx, booking("k", 0, 1, 1, m))
		if err != nil {
			return err
		}
		if r.Outcome == all {
			continue
		}
		s.Advance(r.Wait)
		if _, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, m), all, 0); err != nil {
			return fmt.Errorf("after waiting %v: %w", r.Wait, err)
		}
	}
	return nil
}

func logIsExact(ctx context.Context, s Setup) error {
	l := windowLog("l", 3, time.Second, 0)
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 1, 1, l), all, 0},
		{600 * time.Millisecond, 1, booking("k", 0, 2, 2, l), all, 0},
		{0, 0, booking("k", 0, 1, 1, l), refused, 400 * time.Millisecond},
		{0, 0, booking("k", 0, 2, 2, l), refused, time.Second},
		{400 * time.Millisecond, 1, booking("k", 0, 1, 1, l), all, 0},
		{0, 0, booking("k", time.Second, 1, 1, l), one, 600 * time.Millisecond},
		{0, 0, booking("k", time.Second, 1, 1, l), one, 600 * time.Millisecond},
		{0, 1, booking("k", 0, 1, 1, l), refused, time.Second},
	})
}

func grainIsSafe(ctx context.Context, s Setup) error {
	const size, per, grain = 200, time.Second, 20 * time.Millisecond
	l := windowLog("l", size, per, grain)
	var sent []time.Time
	for i := range 900 {
		r, err := s.Stores[i%2].Book(ctx, booking("k", 0, 1, 1, l))
		if err != nil {
			return err
		}
		if r.Outcome == all {
			sent = append(sent, s.Now())
		}
		s.Advance(time.Duration(1+i%7) * time.Millisecond)
	}
	for i := size; i < len(sent); i++ {
		if d := sent[i].Sub(sent[i-size]); d < per {
			return fmt.Errorf("%d units within %v, want at most %d", size+1, d, size)
		}
	}
	if len(sent) < 2*size {
		return fmt.Errorf("%d units granted in 3.6 s, want at least %d", len(sent), 2*size)
	}
	return nil
}

func calendarTurns(ctx context.Context, s Setup) error {
	c := store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 2, Per: time.Minute, Ends: s.Now().Add(10 * time.Second)}
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 2, 2, c), all, 0},
		{0, 1, booking("k", time.Minute, 1, 1, c), refused, 10 * time.Second},
		{10 * time.Second, 1, booking("k", 0, 2, 2, c), all, 0},
		{59 * time.Second, 0, booking("k", 0, 1, 1, c), refused, time.Second},
		{61 * time.Second, 0, booking("k", 0, 3, 3, c), impossible, 0},
		{0, 0, booking("k", 0, 2, 2, c), all, 0},
	})
}

func refusalIsFree(ctx context.Context, s Setup) error {
	m := meter("m", 1, 1)
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, m), all, 0); err != nil {
		return err
	}
	for range 20 {
		if _, err := want(ctx, s.Stores[1], booking("k", 0, 1, 1, m), refused, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func limitsTogether(ctx context.Context, s Setup) error {
	wide, narrow := meter("wide", 10, 1), windowLog("narrow", 1, time.Minute, 0)
	if _, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, wide, narrow), all, 0); err != nil {
		return err
	}
	for range 20 {
		if _, err := want(ctx, s.Stores[1], booking("k", 0, 1, 1, wide, narrow), refused, time.Minute); err != nil {
			return err
		}
	}
	_, err := want(ctx, s.Stores[1], booking("k", 0, 9, 9, wide), all, 0)
	return err
}

// twoKeys draws one request from a wide and from a narrow key.
func twoKeys(wide, narrow string) store.Booking {
	b := booking(wide, time.Second, 1, 1, meter("m", 10, 1))
	b.Draws = append(b.Draws, booking(narrow, 0, 1, 1, meter("m", 1, 2)).Draws...)
	return b
}

func keysTogether(ctx context.Context, s Setup) error {
	if _, err := want(ctx, s.Stores[0], twoKeys("a", "b"), all, 0); err != nil {
		return err
	}
	for i := range 20 {
		r, err := want(ctx, s.Stores[i%2], twoKeys("a", "b"), refused, 500*time.Millisecond)
		if err != nil {
			return err
		}
		if r.Draw != 1 || r.Limit != 0 {
			return fmt.Errorf("the wait is laid to draw %d, limit %d, want 1, 0", r.Draw, r.Limit)
		}
	}
	_, err := want(ctx, s.Stores[1], booking("a", 0, 9, 9, meter("m", 10, 1)), all, 0)
	return err
}

func keysNeverAhead(ctx context.Context, s Setup) error {
	if _, err := want(ctx, s.Stores[0], twoKeys("a", "b"), all, 0); err != nil {
		return err
	}
	// Half a second is within MaxWait; it would be booked on one key.
	if _, err := want(ctx, s.Stores[1], twoKeys("a", "b"), refused, 500*time.Millisecond); err != nil {
		return err
	}
	s.Advance(500 * time.Millisecond)
	_, err := want(ctx, s.Stores[1], twoKeys("a", "b"), all, 0)
	return err
}

func batchOrFirst(ctx context.Context, s Setup) error {
	m := meter("m", 10, 10)
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 1, 6, m), all, 0},
		{0, 1, booking("k", 0, 1, 6, m), one, 0},
		{0, 0, booking("k", 0, 1, 3, m), all, 0},
		{0, 1, booking("k", time.Second, 1, 3, m), one, 100 * time.Millisecond},
		{0, 1, booking("k", 0, 1, 3, m), refused, 200 * time.Millisecond},
	})
}

func bookingsQueue(ctx context.Context, s Setup) error {
	m := meter("m", 1, 10)
	for i := range 8 {
		wait, o := time.Duration(i)*100*time.Millisecond, one
		if i == 0 {
			o = all
		}
		if _, err := want(ctx, s.Stores[i%2], booking("k", time.Second, 1, 1, m), o, wait); err != nil {
			return err
		}
	}
	return walk(ctx, s, []step{
		{0, 0, booking("k", 500*time.Millisecond, 1, 1, m), refused, 800 * time.Millisecond},
		{300 * time.Millisecond, 1, booking("k", 500*time.Millisecond, 1, 1, m), one, 500 * time.Millisecond},
	})
}

// limitless is a key of which only pauses are kept.
func limitless(ctx context.Context, s Setup) error {
	if err := walk(ctx, s, []step{{0, 0, booking("k", 0, 5, 50), all, 0}}); err != nil {
		return err
	}
	if err := s.Stores[0].Tell(ctx, "k", store.News{Pause: time.Second}); err != nil {
		return err
	}
	return walk(ctx, s, []step{
		{0, 1, booking("k", 0, 5, 50), refused, time.Second},
		{time.Second, 1, booking("k", 0, 5, 50), all, 0},
	})
}

func neverFits(ctx context.Context, s Setup) error {
	m, l := meter("m", 5, 1), windowLog("l", 5, time.Second, 0)
	big := m
	big.Credit = 3
	return walk(ctx, s, []step{
		{0, 0, booking("k", time.Hour, 6, 6, m), impossible, 0},
		{0, 0, booking("k", time.Hour, 6, 6, l), impossible, 0},
		{0, 0, booking("k", time.Hour, 9, 9, big), impossible, 0},
		{0, 1, booking("k", 0, 5, 5, m, l), all, 0},
	})
}

func aboveBucket(ctx context.Context, s Setup) error {
	b := meter("b", 5, 1)
	b.Credit = -1
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 1, 1, b), all, 0},
		{0, 0, booking("k", 0, 8, 8, b), refused, time.Second},
		{time.Second, 1, booking("k", 0, 8, 8, b), one, 0},
		{0, 0, booking("k", 0, 1, 1, b), refused, 4 * time.Second},
	})
}

// aboveBurst is the window-safe form of "10 in 5 s, burst 4".
func aboveBurst(ctx context.Context, s Setup) error {
	m := meter("m", 4, 1.2)
	m.Credit = 6
	return walk(ctx, s, []step{
		{0, 0, booking("k", 0, 10, 10, m), one, 0}, // at rest it has been empty long enough
		{0, 1, booking("k", 0, 4, 4, m), refused, 8333334 * time.Microsecond},
		{9 * time.Second, 1, booking("k", 0, 7, 7, m), refused, 1833334 * time.Microsecond},
		{1833334 * time.Microsecond, 1, booking("k", 0, 7, 7, m), one, 0},
	})
}

func forceCharges(ctx context.Context, s Setup) error {
	m := meter("m", 2, 1)
	f := booking("k", 0, 4, 4, m)
	f.Force = true
	return walk(ctx, s, []step{
		{0, 0, f, one, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, 3 * time.Second},
	})
}

func anyKey(ctx context.Context, s Setup) error {
	keys := []string{"", " ", "{", "}", "{}", "{a}b", "a\x00b", "\xff\xfe", "../../etc", "a/b\\c", "a\r\nDEL x", "ключ", string(make([]byte, 300))}
	for i, k := range keys {
		b := booking(k, 0, 1, 1, meter("id \x00\"'", 1, 1))
		if _, err := want(ctx, s.Stores[i%2], b, all, 0); err != nil {
			return err
		}
		if _, err := want(ctx, s.Stores[(i+1)%2], b, refused, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func faults(ctx context.Context, s Setup) error {
	ok := booking("k", 0, 1, 1, meter("m", 1, 1))
	for name, spoil := range map[string]func(*store.Booking){
		"no draw":       func(b *store.Booking) { b.Draws = nil },
		"key twice":     func(b *store.Booking) { b.Draws = append(b.Draws, b.Draws[0]) },
		"negative cost": func(b *store.Booking) { b.Draws[0].Units[0].First = -1 },
		"no such unit":  func(b *store.Booking) { b.Draws[0].Limits[0].Unit = 1 },
		"rate zero":     func(b *store.Booking) { b.Draws[0].Limits[0].Rate = 0 },
	} {
		b := booking("k", 0, 1, 1, meter("m", 1, 1))
		spoil(&b)
		if _, err := s.Stores[0].Book(ctx, b); err == nil {
			return fmt.Errorf("Book with %s: got no error", name)
		}
	}
	if err := s.Stores[0].Refund(ctx, store.Refund{Key: "k", Gen: 1, Units: []float64{1}}); err == nil {
		return fmt.Errorf("Refund of a unit without a limit: got no error")
	}
	if err := s.Stores[0].Tell(ctx, "k", store.News{Stated: []store.Stated{{Remaining: -1}}}); err == nil {
		return fmt.Errorf("Tell of -1 remaining: got no error")
	}
	_, err := want(ctx, s.Stores[0], ok, all, 0)
	return err
}

func cancelled(ctx context.Context, s Setup) error {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	m := meter("m", 1, 1)
	if _, err := s.Stores[0].Book(gone, booking("k", 0, 1, 1, m)); err == nil {
		return fmt.Errorf("Book with a cancelled context: got no error")
	}
	_, err := want(ctx, s.Stores[0], booking("k", 0, 1, 1, m), all, 0)
	return err
}
