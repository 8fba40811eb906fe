package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Host is the Limit of a host that was never met.
func Host() Limit { return Limit{underway: underway{host: true}} }

// Kind is the Limit of a kind of request to that host that was never met. What is quick
// there is known already.
func (f *Limit) Kind() Limit { return Limit{underway: underway{quick: f.quick}} }

// Stated notes that the server's limits are known, so that no start has to be slow.
func (f *Limit) Stated() { f.stated = true }

// Unstated takes Stated back: the server's word for its limits did not hold. Who has not
// proved itself by then starts slowly again, from where it was.
func (f *Limit) Unstated() {
	f.stated = false
	f.free = f.free && f.good >= provenGood
}

// Pace notes how far apart requests are at the rate that is configured for them; zero: none
// is.
func (f *Limit) Pace(pace time.Duration) { f.pace = pace }

// Free reports whether there is no limit.
func (f *Limit) Free() bool { return f.free }

// Cut reports whether something went wrong, so that fewer are let through.
func (f *Limit) Cut() bool { return f.ease > 0 }

// Good is how many answers were good, at most provenGood.
func (f *Limit) Good() int { return int(f.good) }

// Trip is the smoothed time of good answers; zero: not known.
func (f *Limit) Trip() time.Duration { return f.rtt }

// Place is for about how long a request takes up its place.
func (f *Limit) Place() time.Duration {
	if f.rtt == 0 {
		return freshPatience
	}
	return f.rtt
}

// UnderWay is how many requests are under way, those included that do not count any more.
func (f *Limit) UnderWay() int { return int(f.now + f.old + f.gone) }

// Counted is how many of these do count: they were sent so lately that a refusal of them may
// still come.
func (f *Limit) Counted(now meter.Instant) int {
	f.age(now)
	return int(f.now)
}

// Borne is how many requests at a time the host bears, as far as it has shown, and
// whether that is more than a host is trusted with that was never met.
func (f *Limit) Borne() (n float64, grown bool) {
	if f.free {
		return fullFlight, true
	}
	n = min(float64(max(1, f.Allowed())), fullFlight)
	return n, n > firstFlight
}

// Recall lets f begin with what the host bore before. What it grew to it may have
// at once; what it was cut to, because of losses, is where it grows from.
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
