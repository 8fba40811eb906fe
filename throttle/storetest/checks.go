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

func meterWaits(t trial) {
	m := meter("m", 2, 10)
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), all, 0},
		{0, 0, booking("k", 0, 1, 1, m), refused, 100 * time.Millisecond},
		{40 * time.Millisecond, 1, booking("k", 0, 1, 1, m), refused, 60 * time.Millisecond},
		{0, 1, booking("other", 0, 2, 2, m), all, 0},
	})
}

func waitIsEnough(t trial) {
	m := meter("m", 3, 7) // 1/7 s is no round number of microseconds
	for i := range 50 {
		r := t.book(i%2, booking("k", 0, 1, 1, m))
		if r.Outcome == all {
			continue
		}
		t.Advance(r.Wait)
		t.where = fmt.Sprintf("after waiting %v: ", r.Wait)
		t.want(0, booking("k", 0, 1, 1, m), all, 0)
	}
}

func logIsExact(t trial) {
	l := windowLog("l", 3, time.Second, 0)
	t.walk([]step{
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

func grainIsSafe(t trial) {
	const size, per, grain = 200, time.Second, 20 * time.Millisecond
	l := windowLog("l", size, per, grain)
	var sent []time.Time
	for i := range 900 {
		r := t.book(i%2, booking("k", 0, 1, 1, l))
		if r.Outcome == all {
			sent = append(sent, t.Now())
		}
		t.Advance(time.Duration(1+i%7) * time.Millisecond)
	}
	for i := size; i < len(sent); i++ {
		if d := sent[i].Sub(sent[i-size]); d < per {
			t.failf("%d units within %v, want at most %d", size+1, d, size)
		}
	}
	if len(sent) < 2*size {
		t.failf("%d units granted in 3.6 s, want at least %d", len(sent), 2*size)
	}
}

func calendarTurns(t trial) {
	c := store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 2, Per: time.Minute, Ends: t.Now().Add(10 * time.Second)}
	t.walk([]step{
		{0, 0, booking("k", 0, 2, 2, c), all, 0},
		{0, 1, booking("k", time.Minute, 1, 1, c), refused, 10 * time.Second},
		{10 * time.Second, 1, booking("k", 0, 2, 2, c), all, 0},
		{59 * time.Second, 0, booking("k", 0, 1, 1, c), refused, time.Second},
		{61 * time.Second, 0, booking("k", 0, 3, 3, c), impossible, 0},
		{0, 0, booking("k", 0, 2, 2, c), all, 0},
	})
}

func refusalIsFree(t trial) {
	m := meter("m", 1, 1)
	t.want(0, booking("k", 0, 1, 1, m), all, 0)
	for range 20 {
		t.want(1, booking("k", 0, 1, 1, m), refused, time.Second)
	}
}

func limitsTogether(t trial) {
	wide, narrow := meter("wide", 10, 1), windowLog("narrow", 1, time.Minute, 0)
	t.want(0, booking("k", 0, 1, 1, wide, narrow), all, 0)
	for range 20 {
		t.want(1, booking("k", 0, 1, 1, wide, narrow), refused, time.Minute)
	}
	t.want(1, booking("k", 0, 9, 9, wide), all, 0)
}

// twoKeys draws one request from key a, which is wide, and from b, which is narrow.
func twoKeys() store.Booking {
	b := booking("a", time.Second, 1, 1, meter("m", 10, 1))
	b.Draws = append(b.Draws, booking("b", 0, 1, 1, meter("m", 1, 2)).Draws...)
	return b
}

func keysTogether(t trial) {
	t.want(0, twoKeys(), all, 0)
	for i := range 20 {
		r := t.want(i%2, twoKeys(), refused, 500*time.Millisecond)
		if r.Draw != 1 || r.Limit != 0 {
			t.failf("the wait is laid to draw %d, limit %d, want 1, 0", r.Draw, r.Limit)
		}
	}
	t.want(1, booking("a", 0, 9, 9, meter("m", 10, 1)), all, 0)
}

func keysNeverAhead(t trial) {
	t.want(0, twoKeys(), all, 0)
	// Half a second is within MaxWait; it would be booked on one key.
	t.want(1, twoKeys(), refused, 500*time.Millisecond)
	t.Advance(500 * time.Millisecond)
	t.want(1, twoKeys(), all, 0)
}

func batchOrFirst(t trial) {
	m := meter("m", 10, 10)
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 6, m), all, 0},
		{0, 1, booking("k", 0, 1, 6, m), one, 0},
		{0, 0, booking("k", 0, 1, 3, m), all, 0},
		{0, 1, booking("k", time.Second, 1, 3, m), one, 100 * time.Millisecond},
		{0, 1, booking("k", 0, 1, 3, m), refused, 200 * time.Millisecond},
	})
}

func bookingsQueue(t trial) {
	m := meter("m", 1, 10)
	for i := range 8 {
		wait, o := time.Duration(i)*100*time.Millisecond, one
		if i == 0 {
			o = all
		}
		t.want(i%2, booking("k", time.Second, 1, 1, m), o, wait)
	}
	t.walk([]step{
		{0, 0, booking("k", 500*time.Millisecond, 1, 1, m), refused, 800 * time.Millisecond},
		{300 * time.Millisecond, 1, booking("k", 500*time.Millisecond, 1, 1, m), one, 500 * time.Millisecond},
	})
}

// limitless is a key of which only pauses are kept.
func limitless(t trial) {
	t.walk([]step{{0, 0, booking("k", 0, 5, 50), all, 0}})
	t.tell(0, store.News{Pause: time.Second})
	t.walk([]step{
		{0, 1, booking("k", 0, 5, 50), refused, time.Second},
		{time.Second, 1, booking("k", 0, 5, 50), all, 0},
	})
}

func neverFits(t trial) {
	m, l := meter("m", 5, 1), windowLog("l", 5, time.Second, 0)
	big := m
	big.Credit = 3
	t.walk([]step{
		{0, 0, booking("k", time.Hour, 6, 6, m), impossible, 0},
		{0, 0, booking("k", time.Hour, 6, 6, l), impossible, 0},
		{0, 0, booking("k", time.Hour, 9, 9, big), impossible, 0},
		{0, 1, booking("k", 0, 5, 5, m, l), all, 0},
	})
}

func aboveBucket(t trial) {
	b := meter("b", 5, 1)
	b.Credit = -1
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, b), all, 0},
		{0, 0, booking("k", 0, 8, 8, b), refused, time.Second},
		{time.Second, 1, booking("k", 0, 8, 8, b), one, 0},
		{0, 0, booking("k", 0, 1, 1, b), refused, 4 * time.Second},
	})
}

// aboveBurst is the window-safe form of "10 in 5 s, burst 4".
func aboveBurst(t trial) {
	m := meter("m", 4, 1.2)
	m.Credit = 6
	t.walk([]step{
		{0, 0, booking("k", 0, 10, 10, m), one, 0}, // at rest it has been empty long enough
		{0, 1, booking("k", 0, 4, 4, m), refused, 8333334 * time.Microsecond},
		{9 * time.Second, 1, booking("k", 0, 7, 7, m), refused, 1833334 * time.Microsecond},
		{1833334 * time.Microsecond, 1, booking("k", 0, 7, 7, m), one, 0},
	})
}

func forceCharges(t trial) {
	m := meter("m", 2, 1)
	f := booking("k", 0, 4, 4, m)
	f.Force = true
	t.walk([]step{
		{0, 0, f, one, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, 3 * time.Second},
	})
}

func anyKey(t trial) {
	keys := []string{"", " ", "{", "}", "{}", "{a}b", "a\x00b", "\xff\xfe", "../../etc", "a/b\\c", "a\r\nDEL x", "ключ", string(make([]byte, 300))}
	for i, k := range keys {
		b := booking(k, 0, 1, 1, meter("id \x00\"'", 1, 1))
		t.want(i%2, b, all, 0)
		t.want((i+1)%2, b, refused, time.Second)
	}
}

func faults(t trial) {
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
		if _, err := t.Stores[0].Book(t.ctx, b); err == nil {
			t.failf("Book with %s: got no error", name)
		}
	}
	if err := t.Stores[0].Refund(t.ctx, store.Refund{Key: "k", Gen: 1, Units: []float64{1}}); err == nil {
		t.failf("Refund of a unit without a limit: got no error")
	}
	if err := t.Stores[0].Tell(t.ctx, "k", store.News{Stated: []store.Stated{{Remaining: -1}}}); err == nil {
		t.failf("Tell of -1 remaining: got no error")
	}
	t.want(0, ok, all, 0)
}

func cancelled(t trial) {
	gone, cancel := context.WithCancel(t.ctx)
	cancel()
	m := meter("m", 1, 1)
	if _, err := t.Stores[0].Book(gone, booking("k", 0, 1, 1, m)); err == nil {
		t.failf("Book with a cancelled context: got no error")
	}
	t.want(0, booking("k", 0, 1, 1, m), all, 0)
}
