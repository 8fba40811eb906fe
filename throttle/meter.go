package throttle

import "time"

// meter is what an account counts with. All its methods are arithmetic on
// state and now, called under the engine's lock; now never steps back.
type accountMeter interface {
	// fits reports whether n units can ever be granted at once.
	fits(n int64) bool

	// at is the earliest instant at which n units, which fit, may be granted if
	// nothing is taken or given back until then; now if they may be now; never
	// if that depends on an event.
	at(now instant, n int64) instant

	// eta is an estimate of when n units may be granted that come after ahead
	// units of others.
	eta(now instant, ahead, n int64) instant

	// regain is about how long it takes to have n units again once they are spent.
	regain(n int64) time.Duration

	// room is how many units may be granted at once now.
	room(now instant) int64

	// take charges n units, be there room or not. If held, answered or back
	// follows. What it returns goes back with them.
	take(now instant, n int64, held bool) mark

	// answered says that the answer came to the request of a held grant.
	answered(now instant, n int64, m mark, granted instant)

	// back returns n units, all or some, of a grant. answered is zero if that is
	// held still, and when it was granted if it never was.
	back(now instant, n int64, m mark, granted, answered instant)

	// view describes the meter for people.
	view(now instant) view

	// full reports whether nothing would be lost by forgetting the meter.
	full(now instant) bool
}

// mark is what a meter wants to know again when units come back.
type mark instant

// view is a meter in figures.
type view struct {
	limit int64   // units that could be granted at once if all were idle
	left  float64 // units that may be granted now
	full  instant // when everything will be there again; never: when an event says so
	// unspent is left without regard to how many may go at once.
	unspent float64
}
