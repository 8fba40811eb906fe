package stated

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// askedFor is how long a request may take to ask what a new window holds, before another one
// asks. Most answers take less. It is long because a request that asks may be refused.
const askedFor = 10 * time.Second

// farOff bounds waits, in seconds, so that they fit into a Duration. No request waits for so
// long.
const farOff = 1e6

// wait is how long a request of cost units has to wait; meter.Unknown: until an answer comes.
func (q *Limit) wait(now meter.Instant, cost float64) time.Duration {
	q.roll(now)
	if q.fresh.IsOpen() {
		if again := q.fresh.Asked(now); again != 0 && q.spare < cost && q.trailed(now, cost) > 0 {
			return again.Sub(now)
		}
		return 0
	}
	if !q.counted {
		if q.left <= 0 && q.reset.Known {
			return q.until().Sub(now)
		}
		return 0
	}
	if q.size.Known && cost > 1 {
		cost = min(cost, max(1, q.size.Value)) // a request that costs more than the limit goes when all of it is left
	}
	q.lasts(now)
	q.learns(now)
	level := q.level(now)
	lack := cost - q.room(level)
	if lack > 1e-9 && q.shared.tally != nil {
		q.shared.lead.Lacks(now, q.shared.alone)
	}
	switch {
	case q.blind() && q.out+q.early > 0:
		return meter.Unknown
	case lack > 1e-9:
		return q.lacking(now, cost, lack)
	case q.terms.Pace:
		return q.paced(now, cost)
	case q.testing():
		return q.sparing(now)
	case q.shared.tally != nil:
		return q.turn(now, cost, cost-lack)
	case q.flows():
		return q.dripping(now, cost, level)
	}
	return 0
}

// lacking is how long a request has to wait whose cost is by lack more than what is left.
func (q *Limit) lacking(now meter.Instant, cost, lack float64) time.Duration {
	switch {
	case q.flows():
		d := q.gains(now, lack)
		if most := q.basis.Add(q.terms.MaxPause).Sub(now); d <= q.terms.MaxPause || d <= most {
			return max(time.Millisecond, d)
		} else if most <= 0 && q.out+q.early > 0 {
			return q.answers(now)
		} else {
			return max(0, most)
		}
	case q.guessed && q.left >= 1:
		if q.out+q.early > 0 {
			return q.answers(now)
		}
		return 0 // it may need less than others did, so one request at a time is sent
	case q.left >= cost && q.Sharing.Unsure() && q.out+q.early > 0 && !q.reset.Known:
		return meter.Unknown // requests under way may draw on another limit
	case q.reset.Known:
		return q.watch(now, min(q.until().Sub(now), q.trailed(now, cost)), q.shared.marks.waits)
	}
	if d := q.trailed(now, cost); d != meter.Unknown {
		return d
	}
	if q.out+q.early > 0 {
		return q.answers(now)
	}
	if d := q.basis.Add(q.guess()).Sub(now); d > 0 {
		return d
	}
	q.basis = now
	q.ask(false)
	return 0
}

// paced is the wait that spreads what is left evenly over the rest of the window. The time
// between two requests is at most MaxPause, unless enough answers agree on the reset.
func (q *Limit) paced(now meter.Instant, cost float64) time.Duration {
	if q.lastSent == 0 {
		return 0
	}
	gap := 0.0
	switch level := q.level(now); {
	case q.flows():
		gap = 1 / q.rate()
	case q.reset.Known && level > 0:
		gap = q.reset.Value.Sub(now).Seconds() / level
	case q.rate() > 0:
		gap = 1 / q.rate()
	}
	most := q.terms.MaxPause
	if q.agree >= agreed {
		most = max(most, cooldown.MostBelieved)
	}
	gap = min(gap*cost, most.Seconds())
	return max(0, q.lastSent.Add(time.Duration(gap*float64(time.Second))).Sub(now))
}

// answers is how long answers to the requests under way are awaited.
func (q *Limit) answers(now meter.Instant) time.Duration {
	at := min(q.ripensOut(), q.ripensEarly())
	if at == meter.Never || !q.presumes() {
		return meter.Unknown
	}
	return max(time.Millisecond, at.Sub(now))
}
