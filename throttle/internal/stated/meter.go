package stated

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Asks is a bit of the token that Take returns. It says that the request was let through to
// ask what there is.
const Asks meter.Token = 1

// At implements meter.Meter.
func (q *Limit) At(now meter.Instant, n int64) meter.Instant {
	if q.ample(now, float64(n)) {
		return now
	}
	if d := q.wait(now, float64(n)); d != meter.Unknown {
		return now.Add(d)
	}
	return meter.Never
}

// Take implements meter.Meter. Units that are not held are a settlement.
func (q *Limit) Take(now meter.Instant, n int64, held bool) (m meter.Token) {
	if !q.goesOn(now) {
		q.roll(now)
	}
	if q.out+q.early > 0 || q.fresh.IsOpen() { // else presume has nothing to do
		q.presume(now)
	}
	if !held {
		q.left -= float64(n)
		return 0
	}
	if q.fresh.IsOpen() && q.fresh.Ask(now, q.askedFor()) {
		m = Asks
	}
	q.presumed.takes(now, q.lastSent, q.out, m == Asks)
	q.lastSent = now
	q.shared.lead.Drew(float64(n))
	if q.counted {
		q.out += float64(n)
		q.sentSince, q.statedAt = q.since()+n, q.basis
	}
	q.spare -= float64(n)
	return m
}

// Answered implements meter.Meter. Hear, and not this, learns from the answer.
func (q *Limit) Answered(now meter.Instant, n int64, m meter.Token, granted meter.Instant) (more bool) {
	if q.counted {
		if q.release(n, m, granted); q.trail != nil {
			q.trail.answered(now, n, q.late(granted))
		}
	}
	return false
}

// Return implements meter.Meter. It gives back units of a request that was not answered. If
// the request was answered, the server has counted it in its own way, and Return does nothing.
func (q *Limit) Return(_ meter.Instant, n int64, m meter.Token, granted, answered meter.Instant) {
	if answered == 0 {
		q.shared.lead.Drew(-float64(n))
		q.spare += float64(n)
		if q.counted && granted >= q.statedAt {
			q.sentSince = max(0, q.sentSince-n)
		}
		q.release(n, m, granted)
	}
}

func (q *Limit) release(n int64, m meter.Token, granted meter.Instant) {
	if q.presumed.ends(granted, float64(n)) && q.counted {
		if q.out -= float64(n); q.out < 0 {
			q.out = 0
		}
	}
	q.fresh.Done(m&Asks != 0)
}

// ETA implements meter.Meter.
func (q *Limit) ETA(now meter.Instant, ahead, n int64) meter.Instant {
	t := q.At(now, n)
	if r := q.rate(); r > 0 && t > now && t != meter.Never && ahead > 0 {
		t = t.Add(meter.Seconds(float64(ahead) / r)) // an estimate: really they come back with each window
	}
	return max(t, q.Sure(now, now, ahead, n))
}

// Sure is when there will be n units after ahead units of others at the earliest, as the server
// itself said. A caller that is refused because of it is told a fact. So what was only found
// out does not make it later: a rate, a sliding log, or resets that were too early. Units
// under way count only if they were sent after the server stated what is left, as others may be
// part of that statement already.
func (q *Limit) Sure(now, _ meter.Instant, ahead, n int64) meter.Instant {
	q.roll(now)
	cost := float64(n)
	if q.size.Known {
		cost = min(cost, max(1, q.size.Value))
	}
	lack := float64(ahead) + cost - q.presumed.units - max(q.level(now), q.left-q.flying()) - max(0, q.flying()-max(float64(q.since()), q.shared.booked()))
	if q.Sharing.Unsure() {
		lack = cost - q.left // requests under way or ahead may draw on another limit
	}
	if !q.exact() {
		lack = 1 - q.left
	}
	switch {
	case q.fresh.IsOpen() || lack <= 1e-9:
		return now
	case q.trickles:
		most := q.basis.Add(q.terms.MaxPause).Sub(now)
		return now.Add(max(0, min(meter.Seconds(lack/q.refill), most)))
	case q.flows() || !q.reset.Known:
		return now
	}
	d := q.until().Sub(now) - q.slack
	if q.exact() {
		d = min(d, q.trailed(now, cost))
	}
	return now.Add(max(0, d))
}

// Regain implements meter.Meter.
func (q *Limit) Regain(int64) time.Duration { return q.guess() }
