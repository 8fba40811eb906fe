package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Host returns the Limit of a host to which nothing was sent yet.
func Host() Limit { return Limit{underway: underway{host: true}} }

// Kind returns the Limit of a new kind of request to the host of f. How long quick answers of
// the host take is known already.
func (f *Limit) Kind() Limit { return Limit{underway: underway{quick: f.quick}} }

// Stated notes that the server's limits are known, so that no start has to be slow.
func (f *Limit) Stated() { f.stated = true }

// Unstated takes Stated back, because the limits that the server stated did not hold. If the
// host has not proved itself by then, its limit starts to grow again from what it was.
func (f *Limit) Unstated() {
	f.stated = false
	f.free = f.free && f.good >= provenGood
}

// Pace notes the time between requests at the rate that is configured for them; zero: none is.
func (f *Limit) Pace(pace time.Duration) { f.pace = pace }

// Free reports whether there is no limit.
func (f *Limit) Free() bool { return f.free }

// Cut reports whether something went wrong, so that fewer requests are let through.
func (f *Limit) Cut() bool { return f.ease > 0 }

// Good is how many answers were good, at most provenGood.
func (f *Limit) Good() int { return int(f.good) }

// Trip is the smoothed time from a request's start to the headers of a good answer; zero: not
// known.
func (f *Limit) Trip() time.Duration { return f.rtt }

// Place is about for how long a request counts: Trip, or a guess if that is not known.
func (f *Limit) Place() time.Duration {
	if f.rtt == 0 {
		return freshPatience
	}
	return f.rtt
}

// UnderWay is how many requests are under way, including those that do not count any more.
func (f *Limit) UnderWay() int { return int(f.now + f.old + f.gone) }

// Counted is how many requests under way count: they were sent so lately that they may still
// be refused.
func (f *Limit) Counted(now meter.Instant) int {
	f.age(now)
	return int(f.now)
}

// Borne is how many requests at a time the host was found to serve, and whether that is more
// than a new host may have.
func (f *Limit) Borne() (n float64, grown bool) {
	if f.free {
		return fullFlight, true
	}
	n = min(float64(max(1, f.Allowed())), fullFlight)
	return n, n > firstFlight
}

// Recall lets a new f begin with n, which Borne returned in an earlier run of the program. If
// cut is set, n is what the limit was cut to, and it grows from there as after a loss.
func (f *Limit) Recall(now meter.Instant, n float64, cut bool) {
	n = max(1, min(n, fullFlight))
	switch {
	case f.free || f.limit > 1: // a fleet begins with one
	case cut:
		f.shrink(now, n, n)
	default:
		f.limit = n
	}
}
