package storetest

import (
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// moving is a booking of n that moves units of an earlier one.
func moving(n, units int64, r store.Booked, age time.Duration, ls ...store.Limit) store.Booking {
	b := booking("k", 0, n, n, ls...)
	b.Draws[0].Moved = []store.Moved{{Gen: r.Keys[0].Gen, From: r.Ready, Age: age, Units: []int64{units}}}
	return b
}

// movedCounts: when an answer comes late, its units count from that time on.
func movedCounts(t trial) {
	l := windowLog("l", 3, time.Second, 0)
	r := t.want(0, booking("k", 0, 2, 2, l), all, 0)
	t.Advance(700 * time.Millisecond)
	// One of the two was answered 200 ms ago. What is refused writes nothing.
	t.walk([]step{
		{0, 1, moving(2, 1, r, 200*time.Millisecond, l), refused, 300 * time.Millisecond},
		{0, 1, booking("k", 0, 2, 2, l), refused, 300 * time.Millisecond},
		{0, 1, moving(0, 1, r, 200*time.Millisecond, l), all, 0},
		{0, 0, booking("k", 0, 1, 1, l), all, 0},
		{300 * time.Millisecond, 0, booking("k", 0, 1, 1, l), all, 0},
		{0, 0, booking("k", 0, 1, 1, l), refused, 500 * time.Millisecond},
	})
	// The other unit's answer comes when the unit has left the window: it counts again.
	t.walk([]step{
		{400 * time.Millisecond, 1, moving(0, 1, r, 100*time.Millisecond, l), all, 0},
		{0, 0, booking("k", 0, 1, 1, l), refused, 300 * time.Millisecond},
		{300 * time.Millisecond, 0, booking("k", 0, 1, 1, l), all, 0},
		{0, 0, booking("k", 0, 1, 1, l), refused, 300 * time.Millisecond},
	})
}

// movedIntoWindow: a unit that was booked before a window's boundary and came after it
// counts in both windows.
func movedIntoWindow(t trial) {
	c := store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 3, Per: time.Minute, Ends: t.Now().Add(10 * time.Second)}
	r := t.want(0, booking("k", 0, 3, 3, c), all, 0)
	t.walk([]step{
		{9 * time.Second, 0, moving(0, 1, r, time.Second, c), all, 0},
		{2 * time.Second, 0, moving(0, 2, r, 500*time.Millisecond, c), all, 0},
		{0, 1, moving(0, 1, r, 1500*time.Millisecond, c), all, 0},
		{0, 1, booking("k", 0, 2, 2, c), refused, 59 * time.Second},
		{0, 1, booking("k", 0, 1, 1, c), all, 0},
	})
}

// underWay: a Log can count requests under way, one unit for each. A unit stays in use
// as long as it is dated anew. It is free when it is given back, or a window after it
// was dated last. If a unit is given back late or twice, no other unit is freed.
func underWay(t trial) {
	l := windowLog("flight", 2, 10*time.Second, 0)
	b, none := booking("k", 0, 1, 1, l), booking("k", 0, 0, 0, l)
	none.Force = true
	lives := t.want(0, b, all, 0)
	t.Advance(time.Second)
	killed := t.want(1, b, all, 0)
	dated := none
	dated.Draws = []store.Draw{none.Draws[0]}
	dated.Draws[0].Moved = []store.Moved{{Gen: lives.Keys[0].Gen, From: lives.Ready, Units: []int64{1}}}
	t.Advance(7 * time.Second)
	at := t.want(0, dated, one, 0)
	t.walk([]step{
		{0, 1, b, refused, 3 * time.Second},
		{3 * time.Second, 1, b, all, 0},
		{0, 0, b, refused, 7 * time.Second},
	})
	late := killed.Refund(b, 0, []int64{1}, nil)
	t.refund(1, late)
	t.want(0, b, refused, 7*time.Second)
	ends := at.Refund(b, 0, []int64{1}, nil)
	for range 2 {
		t.refund(0, ends)
	}
	t.walk([]step{
		{0, 0, b, all, 0},
		{0, 1, b, refused, 10 * time.Second},
	})
}

// refundOfOldUnits: a refund of units that have left the window takes away nothing that
// others have booked since.
func refundOfOldUnits(t trial) {
	l := windowLog("l", 2, time.Second, 0)
	b := booking("k", 0, 1, 1, l)
	r := t.want(0, b, all, 0)
	f := r.Refund(b, 0, []int64{1}, nil)
	t.walk([]step{
		{800 * time.Millisecond, 1, b, all, 0},
		{400 * time.Millisecond, 1, b, all, 0},
	})
	t.refund(0, f)
	t.want(1, b, refused, 600*time.Millisecond)
}
