package stated

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// askedFor is how long a request may take to ask what a new window holds until another does.
// Most answers take less, and whoever asks in vain spends what may not be there.
const askedFor = 10 * time.Second

// farOff is as long as any wait, in seconds: it keeps what follows within a Duration.
const farOff = 1e6

// wait is how long cost units have to wait; meter.Unknown: until an answer comes.
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
	q.learns(now)
	level := q.level(now)
	lack := cost - q.room(level)
	if lack > 1e-9 && q.shared.tally != nil {
		q.shared.lead.Lacks(now)
	}
	switch {
	case q.blind() && q.out+q.early > 0:
		return meter.Unknown
	case lack <= 1e-9 && q.terms.Pace:
		return q.paced(now, cost)
	case lack <= 1e-9 && q.testing():
		return q.sparing(now)
	case lack <= 1e-9 && q.shared.tally == nil && q.flows():
		return q.dripping(now, cost, level)
	case lack <= 1e-9 && q.shared.tally == nil:
		return 0
	case lack <= 1e-9:
		return q.turn(now, cost, cost-lack)
	case q.flows():
		d := time.Duration(min(lack/q.rate(), farOff) * float64(time.Second))
		if most := q.basis.Add(q.terms.MaxPause).Sub(now); d <= q.terms.MaxPause || d <= most {
			return max(time.Millisecond, d)
		} else if most <= 0 && q.out+q.early > 0 {
			return meter.Unknown
		} else {
			return max(0, most)
		}
	case q.guessed && q.left >= 1:
		if q.out+q.early > 0 {
			return meter.Unknown
		}
		return 0 // it may need less than others did: one at a time finds out
	case q.left >= cost && q.Sharing.Unsure() && q.out+q.early > 0:
		return meter.Unknown // perhaps what is under way draws on others
	case q.reset.Known:
		return q.watch(now, min(q.until().Sub(now), q.trailed(now, cost)))
	case q.out+q.early > 0:
		return meter.Unknown
	}
	if d := q.basis.Add(q.guess()).Sub(now); d > 0 {
		return d
	}
	q.basis = now
	q.ask()
	return 0
}

// paced spreads what is left evenly over the rest of the window. A window that
// was not said often makes no longer gaps than a pause may be.
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
