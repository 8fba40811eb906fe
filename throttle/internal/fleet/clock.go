package fleet

import "github.com/weirhttp/weir/throttle/store"

// clockOf is what the clock read of the server that keeps key i of b; zero: unknown. Keys may
// be on several servers.
func clockOf(b store.Booking, r store.Booked, i int) int64 {
	switch {
	case len(b.Draws) == 1:
		return r.Ready - r.Wait.Microseconds()
	case len(b.Draws[i].Limits) > 0 && (r.Outcome == store.BookedAll || r.Outcome == store.BookedOne):
		return r.Keys[i].At
	}
	return 0
}

// farthest is the latest time that a store's clock may read, in microseconds: the end of the year 9999.
const farthest = 253_402_300_799_999_999

// inexact is by how much later than the clock is known to have read a key may have been written, in
// microseconds: waits are rounded, and some stores count in milliseconds.
const inexact = 1000

// possible reports whether a key may have been written at at when the store's clock read clock; zero:
// unknown. What is impossible is not remembered: later calls would tell the store of it, which would
// seem to have lost what was written by then, for as long as that is in the future.
func possible(at, clock int64) bool {
	return max(at, clock) <= farthest && (clock == 0 || at <= clock+inexact)
}
