package meter

import "time"

// warm is Guava's SmoothWarmingUp: permits stored while idle make those that
// use them slower, and each grant is paid for by the next one.
type warm struct {
	stored float64 // as of next, or later
	next   Instant // when the next unit may go
}

// warmSpec holds the constants of a rate that warms up, in seconds and permits.
type warmSpec struct {
	interval, cold float64 // between units, when warm and when cold
	slope          float64
	from, most     float64 // stored permits: where slowness begins, and at most
	refill         float64 // seconds to store one permit
}

// coldFactor is how much slower than the rate a cold host is met, as in Guava's
// RateLimiter.create.
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

// now stores what idling has earned.
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

// back gives up what of n units' time, which would have ended at next, is
// still to come.
func (w *warm) back(now Instant, s *warmSpec, n int64, next Instant) {
	left := min(time.Duration(next-now), Seconds(float64(n)*s.interval))
	if left > 0 {
		w.next = max(now, w.next-Instant(left))
	}
}

// state tells s whether a unit may go, and what idling would still earn.
func (w *warm) state(now Instant, r *warmSpec, s *State) {
	w.now(now, r)
	if s.Left = min(s.Left, 1); w.next > now {
		s.Left = 0
	}
	s.Idle = s.Idle && w.stored >= r.most && w.next <= now
}
