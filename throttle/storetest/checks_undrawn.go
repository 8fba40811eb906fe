package storetest

import "time"

// Processes with old and new settings draw on different limits of one key while
// a change is rolled out.

// undrawnDrains: a meter drains even while only other limits of its key are drawn on.
func undrawnDrains(t trial) {
	old, busy := meter("old", 1, 1), meter("busy", 100, 100)
	steps := []step{{0, 0, booking("k", 0, 1, 1, old), all, 0}}
	for range 9 {
		steps = append(steps, step{100 * time.Millisecond, 1, booking("k", 0, 1, 1, busy), all, 0})
	}
	t.walk(append(steps,
		step{0, 0, booking("k", 0, 1, 1, old), refused, 100 * time.Millisecond},
		step{100 * time.Millisecond, 0, booking("k", 0, 1, 1, old), all, 0},
	))
}

// undrawnLasts: units count for as long as their limit says, even if other bookings of
// the key draw on limits that are shorter.
func undrawnLasts(t trial) {
	long, short := windowLog("long", 1, 10*time.Second, 0), meter("short", 10, 10)
	slow := meter("slow", 1, 0.1)
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, long, slow), all, 0},
		{time.Second, 1, booking("k", 0, 1, 1, short), all, 0},
		{5 * time.Second, 1, booking("k", 0, 1, 1, short), all, 0},
		{2 * time.Second, 0, booking("k", 0, 1, 1, long), refused, 2 * time.Second},
		{0, 0, booking("k", 0, 1, 1, slow), refused, 2 * time.Second},
		{2 * time.Second, 0, booking("k", 0, 1, 1, long, slow), all, 0},
	})
}

// undrawnKeepsItsDistance: when the clock steps back, a limit that is not drawn on at
// that moment is free after the same time as without the step.
func undrawnKeepsItsDistance(t trial) {
	if !t.Back {
		return
	}
	log, slow, other := windowLog("log", 1, 10*time.Second, 0), meter("slow", 1, 0.1), meter("other", 10, 10)
	t.walk([]step{
		{0, 0, booking("k", 0, 1, 1, log, slow), all, 0},
		{4 * time.Second, 1, booking("k", 0, 1, 1, other), all, 0},
		{-time.Hour, 1, booking("k", 0, 1, 1, other), all, 0},
		{0, 0, booking("k", 0, 1, 1, log), refused, 6 * time.Second},
		{0, 0, booking("k", 0, 1, 1, slow), refused, 6 * time.Second},
		{6 * time.Second, 0, booking("k", 0, 1, 1, log, slow), all, 0},
	})
}
