package storetest

import (
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
func healsBeforeCharging(t trial) {
	afterLoss(t, func(l store.Limit, first, last store.Booked) []step {
		return []step{
			{0, 0, remembers(6, first, 0, l), refused, time.Second},
			{500 * time.Millisecond, 1, remembers(1, last, 500*time.Millisecond, l), refused, 500 * time.Millisecond},
			{500 * time.Millisecond, 0, booking("k", 0, 1, 1, l), all, 0},
		}
	})
}

// healsAfterNewcomers: if a newcomer was served of a state that was lost, those that remember units are heard
// nevertheless before more is charged.
func healsAfterNewcomers(t trial) {
	afterLoss(t, func(l store.Limit, first, last store.Booked) []step {
		return []step{
			{0, 0, booking("k", 0, 1, 1, l), all, 0},
			{500 * time.Millisecond, 0, remembers(5, first, 500*time.Millisecond, l), refused, time.Second},
			{500 * time.Millisecond, 1, remembers(1, last, time.Second, l), refused, 500 * time.Millisecond},
			{500 * time.Millisecond, 0, booking("k", 0, 1, 1, l), all, 0},
		}
	})
}

// afterLoss walks steps after a state was lost of which process 0 remembers first, 4 of 10 units,
// and process 1 last, 9 of them. All 10 are spent then.
func afterLoss(t trial, steps func(l store.Limit, first, last store.Booked) []step) {
	if t.Lose == nil {
		return
	}
	for _, l := range []store.Limit{windowLog("l", 10, time.Minute, 0), meter("m", 10, 0.03)} {
		first := t.want(0, booking("k", 0, 4, 4, l), all, 0)
		last := t.want(1, booking("k", 0, 5, 5, l), all, 0)
		t.Lose()
		t.Advance(time.Microsecond)
		t.walk(steps(l, first, last))
		fullNow(t, l)
		t.Lose()
	}
}

// fullNow fails if k has room for one unit of l.
func fullNow(t trial, l store.Limit) {
	if r := t.book(0, booking("k", 0, 1, 1, l)); r.Outcome != refused {
		t.failf("got outcome %d of a key that is full", r.Outcome)
	}
}

// restoredHeals: processes that remember nothing, little and much come in different
// orders. In the end everything counts that was granted since the dump.
func restoredHeals(t trial) {
	if t.Save == nil {
		return
	}
	l := windowLog("l", 10, time.Minute, 0)
	for order := range 6 {
		first := t.want(0, booking("k", 0, 4, 4, l), all, 0)
		restore := t.Save()
		t.Advance(time.Second)
		second := t.want(0, booking("k", 0, 3, 3, l), all, 0)
		last := t.want(1, booking("k", 0, 2, 2, l), all, 0)
		restore()
		t.Advance(time.Second)
		who := []store.Booking{booking("k", time.Second, 1, 1, l), remembers(1, first, 2*time.Second, l), remembers(1, second, time.Second, l), remembers(1, last, time.Second, l)}
		for i := range who {
			b := who[(i*(1+2*(order/4))+order)%4]
			t.want(i%2, b, refused, time.Second)
		}
		t.Advance(time.Second)
		t.want(order%2, booking("k", 0, 1, 1, l), all, 0)
		fullNow(t, l)
		t.Advance(2 * time.Minute)
	}
}

// restoredServes: if no process remembers more than the restored state has, bookings are
// held back for a second only.
func restoredServes(t trial) {
	if t.Save == nil {
		return
	}
	m := meter("m", 4, 0.1)
	t.want(0, booking("k", 0, 3, 3, m), all, 0)
	t.Save()()
	t.walk([]step{
		{0, 0, booking("k", time.Second, 1, 1, m), refused, time.Second},
		{400 * time.Millisecond, 1, booking("k", time.Second, 1, 1, m), refused, 600 * time.Millisecond},
		{600 * time.Millisecond, 1, booking("k", 0, 1, 1, m), all, 0},
		{0, 0, booking("other", 0, 4, 4, m), all, 0},
	})
}

func restoredRefund(t trial) {
	if t.Save == nil {
		return
	}
	l := windowLog("l", 10, time.Minute, 0)
	b := booking("k", 0, 5, 5, l)
	t.want(0, b, all, 0)
	restore := t.Save()
	r := t.want(0, b, all, 0)
	restore()
	t.refund(0, r.Refund(b, 0, []int64{5}, nil))
	t.walk([]step{
		{0, 1, booking("k", 0, 1, 1, l), refused, time.Second},
		{time.Second, 1, booking("k", 0, 5, 5, l), all, 0},
		{0, 1, booking("k", 0, 1, 1, l), refused, 59 * time.Second},
	})
}
