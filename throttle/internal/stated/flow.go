package stated

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// rate is how fast units come back in the long run, in units per second; zero: unknown.
func (q *Limit) rate() float64 {
	switch {
	case q.refill > 0:
		return q.refill
	case q.size.Known && q.window > 0:
		return q.size.Value / q.window.Seconds()
	case q.size.Known && q.weighted():
		return q.size.Value / q.judge.Span().Seconds()
	}
	return 0
}

// flows reports that units come back all the time, and that it is known how many.
func (q *Limit) flows() bool {
	switch {
	case q.trickles, q.weighted():
	case q.judge.Kind() == refill.Bucket && q.means != headers.Boundary:
	default:
		return false
	}
	return q.refill > 0 || q.size.Known && (q.window > 0 || q.weighted()) // q.rate() > 0, without a division
}

// returns is how many units of a limit that flows come back every second, at most, if an answer
// states it as l; zero: it does not flow.
func (q *Limit) returns(l *headers.Limit) float64 {
	left, ok := l.Left()
	full := l.Reset.Value - Coarse // it may have been rounded up by as much
	switch {
	case !q.flows():
		return 0
	case q.trickles:
		return q.refill
	case ok && q.means == headers.Full && l.Reset.Known && full > 0:
		return max(q.rate(), refill.Rate(q.sizeOr(0), left, full))
	}
	return math.Inf(1)
}

// weighted reports that q is a sliding counter. The processes of a fleet do not find that out, as
// each of them would have to know what all others spend. Nor does anybody if only refusals state q:
// these do not say what comes back between them.
func (q *Limit) weighted() bool {
	return q.judge.Kind() == refill.Counter && !q.quiet.is && !q.trickles && q.shared.tally == nil
}

// gain is how many units of a limit that flows have come back since basis.
func (q *Limit) gain(now meter.Instant) float64 {
	if q.weighted() {
		units, full := q.judge.Gain(q.basis, now)
		if full && q.size.Known {
			units = max(units, q.size.Value-q.left)
		}
		return units
	}
	return q.rate() * now.Sub(q.basis).Seconds()
}

// gains is how long it takes until so many units of a limit that flows have come back.
func (q *Limit) gains(now meter.Instant, units float64) time.Duration {
	if q.weighted() {
		return min(q.judge.Until(now, units).Until(now), meter.Seconds(farOff))
	}
	return time.Duration(min(units/q.rate(), farOff) * float64(time.Second))
}
