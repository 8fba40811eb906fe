package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

func refundGivesBack(t trial) {
	m, l := meter("m", 4, 1), windowLog("l", 5, 10*time.Second, 0)
	b := booking("k", 0, 3, 3, m, l)
	r := t.want(0, b, all, 0)
	t.Advance(2 * time.Second) // one unit of three is left in the meter, all in the log
	t.refund(0, r.Refund(b, 0, []int64{3}, nil))
	t.walk([]step{
		{0, 1, booking("k", 0, 4, 4, m, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 10 * time.Second},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Second},
	})
}

// lateRefund: units that drained from a meter between a booking and its refund are free
// for others already, so the refund, in one part or in two, does not give them back again.
func lateRefund(t trial) {
	m := meter("m", 10, 10)
	b := booking("k", 0, 10, 10, m)
	r := t.want(0, b, all, 0)
	given := make([]float64, 1)
	parts := []store.Refund{r.Refund(b, 0, []int64{4}, given), r.Refund(b, 0, []int64{6}, given)}
	t.Advance(400 * time.Millisecond)
	t.want(1, booking("k", 0, 4, 4, m), all, 0)
	for _, f := range parts {
		t.refund(0, f)
	}
	t.walk([]step{ // four were sent: six are left
		{0, 1, booking("k", 0, 7, 7, m), refused, 100 * time.Millisecond},
		{0, 1, booking("k", 0, 6, 6, m), all, 0},
	})
}

// refundBehind: a unit is given back after a later one was booked ahead. It must not be
// booked again, because that request would start together with the later one. Only the
// unit that was booked last can be given back in full.
func refundBehind(t trial) {
	m := meter("m", 1, 4)
	b := booking("k", time.Second, 1, 1, m)
	r := t.want(0, b, all, 0)
	t.want(1, b, one, 250*time.Millisecond)
	t.refund(0, r.Refund(b, 0, []int64{1}, nil))
	r = t.want(0, b, one, 500*time.Millisecond)
	t.refund(0, r.Refund(b, 0, []int64{1}, nil))
	t.want(1, b, one, 500*time.Millisecond)
}

func refundOfOldState(t trial) {
	m := meter("m", 4, 1)
	b := booking("k", 0, 4, 4, m)
	r := t.want(0, b, all, 0)
	f := r.Refund(b, 0, []int64{4}, nil)
	t.Advance(10 * time.Second) // idle: the next booking begins a new state
	t.want(1, b, all, 0)
	t.refund(0, f)
	t.refund(0, store.Refund{Key: "unknown", Gen: 7, Limits: b.Draws[0].Limits, Units: []float64{1}, Held: []float64{1}})
	t.want(1, booking("k", 0, 1, 1, m), refused, time.Second)
}

func pauseHolds(t trial) {
	m := meter("m", 5, 1)
	t.tell(0, store.News{Pause: 3 * time.Second})
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, m), refused, 3 * time.Second},
		{0, 1, booking("k", time.Second, 1, 1, m), refused, 3 * time.Second},
		{2500 * time.Millisecond, 1, booking("k", time.Second, 1, 1, m), one, 500 * time.Millisecond},
		{0, 0, booking("k", 2*time.Second, 1, 1, m), one, 1500 * time.Millisecond},
		{500 * time.Millisecond, 0, booking("k", 0, 1, 1, m), refused, 2 * time.Second},
		{0, 0, booking("other", 0, 5, 5, m), all, 0},
	})
}

func pauseLaterWins(t trial) {
	m := meter("m", 5, 1)
	for _, d := range []time.Duration{3 * time.Second, time.Second} {
		t.tell(0, store.News{Pause: d})
	}
	t.want(1, booking("k", 0, 1, 1, m), refused, 3*time.Second)
	t.tell(1, store.News{Resume: true, Pause: time.Second}) // that is how a pause is made shorter
	t.want(0, booking("k", 0, 1, 1, m), refused, time.Second)
	t.tell(1, store.News{Resume: true})
	t.want(0, booking("k", 0, 1, 1, m), all, 0)
}

// guessHolds: what is guessed holds as a pause does, but is not told as one. So a process
// knows what it may wait out and what is certain.
func guessHolds(t trial) {
	m := meter("m", 5, 1)
	t.tell(0, store.News{Pause: 2 * time.Second, Guess: 5 * time.Second})
	for _, paused := range []time.Duration{2 * time.Second, time.Second, 0} {
		r := t.want(1, booking("k", time.Second, 1, 1, m), refused, 3*time.Second+paused)
		if r.Limit != store.ByGuess || r.Keys[0].Paused != paused {
			t.failf("of a guess the wait is for limit %d, and %v of it are a pause; want %d and %v", r.Limit, r.Keys[0].Paused, store.ByGuess, paused)
		}
		t.Advance(time.Second)
	}
	t.tell(0, store.News{Pause: 3 * time.Second})
	if r := t.want(1, booking("k", time.Second, 1, 1, m), refused, 3*time.Second); r.Limit != -1 {
		t.failf("a pause that outlasts a guess is told as limit %d", r.Limit)
	}
	t.tell(0, store.News{Guess: 9 * time.Second})
	t.tell(0, store.News{Resume: true})
	t.want(1, booking("k", 0, 1, 1, m), all, 0)
}

func stated(id string, remaining int64, reset time.Duration) store.News {
	return store.News{Stated: []store.Stated{{ID: id, Unit: "requests", Remaining: remaining, Reset: reset}}}
}

func statedBinds(t trial) {
	m := meter("m", 50, 50)
	t.tell(0, stated("core", 3, time.Minute))
	t.walk([]step{
		{0, 1, booking("k", 0, 1, 2, m), all, 0},
		{0, 0, booking("k", time.Second, 1, 2, m), one, 0},
		{0, 1, booking("k", time.Hour, 1, 1, m), refused, time.Minute},
		{time.Minute, 1, booking("k", 0, 1, 20, m), all, 0},
	})
}

func statedTightens(t trial) {
	m := meter("m", 50, 50)
	for _, n := range []store.News{
		stated("core", 2, time.Minute), stated("core", 40, time.Minute), // late news of the same window
		stated("core", 40, 10*time.Second), // of a window that is over
		stated("search", 9, time.Minute),
	} {
		t.tell(0, n)
	}
	t.walk([]step{
		{0, 1, booking("k", 0, 2, 2, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Minute},
	})
	t.tell(1, stated("core", 6, 2*time.Minute))
	t.walk([]step{ // 7 of the other are left
		{0, 0, booking("k", 0, 6, 6, m), all, 0},
		{0, 0, booking("k", 0, 1, 1, m), refused, 2 * time.Minute},
	})
}

func heals(t trial) {
	if t.Lose == nil {
		return
	}
	m, l := meter("m", 4, 1), windowLog("l", 4, 10*time.Second, 0)
	b := booking("k", 0, 4, 4, m, l)
	r := t.want(0, b, all, 0)
	t.tell(0, store.News{Pause: time.Second})
	t.Lose()
	t.Advance(2 * time.Second)
	again := booking("k", 0, 1, 1, m, l)
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0], Age: 2 * time.Second}
	r = t.want(1, again, refused, 8*time.Second)
	if r.Keys[0].Gen == again.Draws[0].Seen.Gen {
		t.failf("a refusal does not keep what the caller remembers")
	}
	// By now others know it too, and the caller only sees it end.
	t.want(0, booking("k", 0, 1, 1, m, l), refused, 8*time.Second)
	t.Advance(8 * time.Second)
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0], Age: 8 * time.Second}
	t.want(1, again, all, 0)
}

// healsInTime: units that a process remembers after the state was lost end about when
// they would have ended, however long ago the process last heard of them. Otherwise a
// budget whose state is lost now and then would never be free again.
func healsInTime(t trial) {
	if t.Lose == nil {
		return
	}
	l := windowLog("l", 4, 10*time.Second, 0)
	t.want(0, booking("k", 0, 4, 4, l), all, 0)
	t.Advance(5 * time.Second)
	again := booking("k", 0, 1, 1, l)
	r := t.want(0, again, refused, 5*time.Second)
	t.Lose()
	again.Draws[0].Seen = store.Seen{Standing: r.Keys[0]}
	t.want(0, again, refused, 6*time.Second) // a second, as far as bookings may reach
}

func races(t trial) {
	const size, callers, each = 40, 8, 10
	l := windowLog("l", size, time.Hour, 0)
	var granted atomic.Int64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				r, err := t.Stores[i%len(t.Stores)].Book(t.ctx, booking("k", 0, 1, 1, l))
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
	t.check(errors.Join(errs...))
	if got := granted.Load(); got != size {
		t.failf("%d of %d racing bookings were granted, want %d", got, callers*each, size)
	}
}

// refills: units that an operator gives back by hand are there for every process, the
// oldest of a log first. What processes remember of them does not take them away again.
func refills(t trial) {
	m, l := meter("m", 4, 1), windowLog("l", 5, 10*time.Second, 0)
	d := store.Limit{ID: "d", Kind: store.CalendarLimit, Size: 6, Per: time.Hour, Ends: t.Now().Truncate(time.Hour).Add(24 * time.Hour)}
	first := t.want(0, booking("k", 0, 2, 2, m, l, d), all, 0)
	t.Advance(time.Second)
	t.want(0, booking("k", 0, 3, 3, m, l, d), all, 0)
	give := func(n int64) {
		t.tell(0, store.News{Refill: []store.Refill{
			{Kind: store.MeterLimit, ID: "m", Units: n}, {Kind: store.LogLimit, ID: "l", Units: n},
			{Kind: store.CalendarLimit, ID: "d", Units: n}, {Kind: store.MeterLimit, ID: "none", Units: n},
		}})
	}
	give(3)
	seen := booking("k", 0, 4, 4, d)
	seen.Draws[0].Seen = store.Seen{Standing: first.Keys[0], Age: time.Second}
	seen.Draws[0].Seen.Levels = first.Keys[0].Levels[2:]
	t.walk([]step{
		{0, 1, booking("k", 0, 4, 4, m), refused, time.Second}, // three of four
		{0, 1, booking("k", 0, 3, 3, m), all, 0},
		{0, 1, booking("k", 0, 3, 3, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 10 * time.Second}, // those of a second ago are gone
		{0, 1, seen, all, 0},
	})
	give(store.MaxAmount)
	t.walk([]step{ // all, and no more
		{0, 1, booking("k", 0, 5, 5, m), impossible, 0},
		{0, 1, booking("k", 0, 4, 4, m), all, 0},
		{0, 1, booking("k", 0, 1, 1, m), refused, time.Second},
		{0, 1, booking("k", 0, 5, 5, l), all, 0},
		{0, 1, booking("k", 0, 6, 6, d), all, 0},
	})
}
