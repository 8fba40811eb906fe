package stated

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// forgetAfter is after how long a limit that the server does not mention any more is
// dropped, unless its window is longer than half of that. Programs that are used from time to
// time should not have to learn it anew each time.
const forgetAfter = 10 * time.Minute

// Facts are what a Limit knows at some instant. Numbers are in units.
type Facts struct {
	Size   headers.Opt[float64]       // of the whole limit
	Window time.Duration              // zero: not known
	Left   float64                    // what answers said until Basis, or what a new window is assumed to hold
	Basis  meter.Instant              // when Left was learned
	Level  float64                    // what may be spent now; below zero: more is under way than is left
	Rate   float64                    // units per second that come back in the long run; zero: not known
	Flows  bool                       // they come back all the time
	Kind   refill.Kind                // the way in which they come back, most likely
	Reset  headers.Opt[meter.Instant] // when all are there again
	Asking bool                       // the reset has passed; one request asks what there is
	Told   bool                       // Left is known, and the limit is obeyed
}

// Facts returns what q knows now.
func (q *Limit) Facts(now meter.Instant) Facts {
	q.roll(now)
	return Facts{
		Size: q.size, Window: q.window, Left: q.left, Basis: q.basis, Level: q.level(now), Rate: q.rate(), Flows: q.flows(), Kind: q.judge.Kind(),
		Reset: q.reset, Asking: q.fresh.IsOpen(), Told: q.left < plentiful && !q.ignored,
	}
}

// Size is how many units there are in all, if the server said.
func (q *Limit) Size() headers.Opt[float64] { return q.size }

// Counted reports whether requests draw units of q.
func (q *Limit) Counted() bool { return q.counted }

// Ignored reports that q is not obeyed, because no evidence supports what the server states.
func (q *Limit) Ignored() bool { return q.ignored }

// Vain is attribution.Belief.Vain of q: q was contradicted, and nothing has confirmed it
// since.
func (q *Limit) Vain() bool { return q.belief.Vain() }

// Several reports that several servers state q, each of which counts for itself. Then q is not obeyed:
// it is not known what all of them have left.
func (q *Limit) Several() bool { return q.counters != nil && q.counters.Several() }

// Firm is attribution.Belief.Firm of q: q would be obeyed after one more contradiction.
func (q *Limit) Firm() bool { return q.belief.Firm() }

// Heard is when an answer last stated q; zero: none has.
func (q *Limit) Heard() meter.Instant { return q.heard }

// Asking reports whether the reset has passed, and a request has to ask what there is.
func (q *Limit) Asking() bool { return q.fresh.IsOpen() }

// Spent reports whether less than a unit is left until a reset, as the last answers said.
func (q *Limit) Spent() bool { return q.Empty() && q.reset.Known }

// Empty reports whether less than a unit is left, as the last answers said.
func (q *Limit) Empty() bool { return q.left < 1 }

// SpentUntil is until when q is spent, as the server said and as far as that is believed;
// zero: it is not spent, or not obeyed.
func (q *Limit) SpentUntil(now meter.Instant) meter.Instant {
	if q.roll(now); !q.Spent() || q.ignored {
		return 0
	}
	return q.until()
}

// SpentAt reports whether q is spent at now, as the last answers said.
func (q *Limit) SpentAt(now meter.Instant) bool { return q.Spent() && now < q.reset.Value }

// ResetAgreed reports whether enough answers agree on the reset, so that requests wait for it
// even for longer than Terms.MaxPause.
func (q *Limit) ResetAgreed(now meter.Instant) bool { return q.reset.Known && q.supported(now) }

// UnderWay is the number of units under way that may be missing from what is left.
func (q *Limit) UnderWay() float64 { return q.flying() + q.presumed.units }

// Everywhere reports that the Store counts what all processes of the fleet draw of q.
func (q *Limit) Everywhere() bool { return q.shared.based }

// Stale reports whether the server has not mentioned q for so long that it may be dropped.
func (q *Limit) Stale(now meter.Instant) bool {
	return now.Sub(q.heard) > max(forgetAfter, 2*q.window)
}

// Idle reports whether nothing would be lost if q were dropped.
func (q *Limit) Idle(now meter.Instant) bool {
	q.roll(now)
	return !q.reset.Known || q.left >= q.sizeOr(plentiful) || q.ignored
}

// Finer returns reset, or after if that is the same instant more exactly. reset is stated in
// whole seconds, and after is a Retry-After with fractions, on an answer that is no refusal, as
// rate-limiter-flexible sends it. A date and the server's clock may both be rounded, so the
// reset may be up to 2 s later than after, or up to 1 s earlier if it was cut.
func Finer(reset, after headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	over := reset.Value - after.Value
	if !reset.Known || !after.Known || reset.Value%time.Second != 0 || after.Value%time.Second == 0 ||
		over <= -time.Second || over >= 2*time.Second {
		return reset
	}
	return after
}
