package meter

import "time"

// warm is SmoothWarmingUp of Guava's RateLimiter. While nothing is sent, permits are
// stored; a grant that uses stored ones takes longer than others. The time that a grant
// takes is waited for by the next one.
type warm struct {
	stored float64 // permits, at next or later
	next   Instant // when the next unit may go
}

// warmSpec holds the constants of a rate that warms up, in seconds and permits.
type warmSpec struct {
	interval, cold float64 // between units, when warm and when cold
	slope          float64 // by how much the interval grows for each stored permit above from
	from, most     float64 // stored permits: above from the interval grows; most is the bound
	refill         float64 // seconds to store one permit
}

// coldFactor is how many times longer than when warm the interval between units is at
// first. Guava's RateLimiter.create has the same.
const coldFactor = 3

func newWarmSpec(perSecond float64, warmUp time.Duration) *warmSpec {
	w := &warmSpec{interval: 1 / perSecond}
	w.cold = coldFactor * w.interval
	u := warmUp.Seconds()
	w.from = 0.5 * u / w.interval
	w.most = w.from + 2*u/(w.interval+w.cold)
	w.slope = (w.cold - w.interval) / (w.most - w.from)
	w.refill = u / w.most
	return w
}

// now stores the permits of the time since next, in which nothing was sent.
func (w *warm) now(now Instant, s *warmSpec) {
	if now > w.next {
		w.stored = min(s.most, w.stored+float64(now-w.next)/1e9/s.refill)
		w.next = now
	}
}

func (w *warm) take(now Instant, s *warmSpec, n int64) (next Instant) {
	w.now(now, s)
	used := min(float64(n), w.stored)
	wait := (float64(n) - used) * s.interval
	if above := w.stored - s.from; above > 0 {
		slow := min(above, used)
		wait += slow * (2*s.interval + (2*above-slow)*s.slope) / 2
		wait += (used - slow) * s.interval
	} else {
		wait += used * s.interval
	}
	w.stored -= used
	w.next = w.next.Add(Seconds(wait))
	return w.next
}

// back is for n units that are given back, whose time was to end at next: the part of
// that time which is still to come is not waited for.
func (w *warm) back(now Instant, s *warmSpec, n int64, next Instant) {
	left := min(time.Duration(next-now), Seconds(float64(n)*s.interval))
	if left > 0 {
		w.next = max(now, w.next-Instant(left))
	}
}

// state puts into s whether a unit may go, and that s is not idle until all permits are
// stored.
func (w *warm) state(now Instant, r *warmSpec, s *State) {
	w.now(now, r)
	if s.Left = min(s.Left, 1); w.next > now {
		s.Left = 0
	}
	s.Idle = s.Idle && w.stored >= r.most && w.next <= now
}
