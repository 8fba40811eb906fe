package storetest

import (
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// told is a booking of n by a process that was last told r, so long ago by its own clocks.
func told(n int64, r store.Booked, age time.Duration, ls ...store.Limit) store.Booking {
	b := remembers(n, r, age, ls...)
	b.Draws[0].Seen.Clock = r.Ready - r.Wait.Microseconds() + age.Microseconds()
	return b
}

// clockBack: if the clock steps back, those who are refused are served after their
// wait all the same, although a refusal otherwise writes nothing to the state.
func clockBack(t trial) {
	if !t.Back {
		return
	}
	m, l := meter("m", 2, 2), windowLog("l", 2, time.Second, 0)
	t.want(0, booking("k", 0, 2, 2, m, l), all, 0)
	t.Advance(-time.Hour)
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, m, l), refused, time.Second},
		{999 * time.Millisecond, 1, booking("k", 0, 1, 1, m, l), refused, time.Millisecond},
		{time.Millisecond, 1, booking("k", 0, 2, 2, m, l), all, 0},
	})
}

// clockAhead: if the clock steps ahead, no window ends because of that, nor a pause, once a
// process has booked that was told the time before. Those that come later, with the same memory
// or none, add nothing to that.
func clockAhead(t trial) {
	m, l := meter("m", 10, 0.1), windowLog("l", 10, 100*time.Second, 0)
	undrawn := windowLog("undrawn", 1, 100*time.Second, 0)
	t.want(0, booking("k", 0, 1, 1, undrawn), all, 0)
	first := t.want(0, booking("k", 0, 4, 4, m, l), all, 0)
	second := t.want(1, booking("k", 0, 6, 6, m, l), all, 0)
	t.tell(0, store.News{Pause: 20 * time.Second})
	t.Advance(time.Second + 40*time.Second) // of these, a second has passed
	t.walk([]step{
		{0, 1, told(1, second, time.Second, m, l), refused, 99 * time.Second},
		{0, 0, told(1, first, time.Second, m, l), refused, 99 * time.Second},
		{0, 0, booking("k", 0, 1, 1, m), refused, 19 * time.Second},
		{0, 0, booking("k", 0, 1, 1, undrawn), refused, 99 * time.Second},
		{98 * time.Second, 0, booking("k", 0, 1, 1, l), refused, time.Second},
		{time.Second, 0, booking("k", 0, 10, 10, l), all, 0},
	})
	part := t.want(0, booking("part", 0, 1, 4, m), all, 0)
	t.Advance(time.Second + 30*time.Second)
	more := told(1, part, time.Second, m)
	more.Draws[0].Key = "part"
	t.walk([]step{
		{0, 1, more, all, 0},
		{0, 0, booking("part", 0, 6, 6, m), refused, 9 * time.Second},
	})
}

// clockSlow: calls that come late, but not later than by a second, and calls after which
// others have booked, are no step of the clock.
func clockSlow(t trial) {
	l := windowLog("l", 2, 10*time.Second, 0)
	r := t.want(0, booking("k", 0, 1, 1, l), all, 0)
	t.Advance(time.Second)
	r2 := t.want(1, told(1, r, 0, l), all, 0)
	t.Advance(5 * time.Second)
	t.want(0, told(1, r, 0, l), refused, 4*time.Second)
	t.want(1, told(1, r2, 5*time.Second, l), refused, 4*time.Second)
	t.Advance(4 * time.Second)
	t.want(0, booking("k", 0, 1, 1, l), all, 0)
}

// clockFarAhead: if the clock steps ahead so far that the state of a key is over, it comes back
// from what processes remember.
func clockFarAhead(t trial) {
	for _, l := range []store.Limit{meter("m", 10, 0.01), windowLog("l", 10, 100*time.Second, 0)} {
		r := t.want(0, booking("k", 0, 10, 10, l), all, 0)
		t.Advance(time.Second + time.Hour) // of these, a second has passed
		if got := t.book(0, told(1, r, time.Second, l)); got.Outcome != refused || got.Wait < 99*time.Second {
			t.failf("%q: outcome %d, after %v, of a key that is full", l.ID, got.Outcome, got.Wait)
		}
		fullNow(t, l)
		t.Advance(time.Hour)
	}
}
