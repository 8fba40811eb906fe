package stated

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// forgetAfter is after how long a limit that the server does not mention any more is
// dropped, unless its window is longer than half of that. Pages that are loaded now and
// then should not learn it anew each time.
const forgetAfter = 10 * time.Minute

// Facts are what a Limit knows, as of some instant.
type Facts struct {
	Size   headers.Opt[float64]
	Window time.Duration // zero: not known
	Left   float64       // as the answers said that were heard until Basis, or as a new window is taken to hold
	Basis  meter.Instant
	Level  float64     // what may be spent now; below zero: more is under way than is left
	Rate   float64     // units per second that come back on the whole; zero: not known
	Flows  bool        // they come back all the time
	Kind   refill.Kind // how they do, most likely
	Reset  headers.Opt[meter.Instant]
	Asking bool // the reset has passed; one request asks what there is
	Told   bool // how much is left is known, and it binds
}

// Facts is what q knows now.
func (q *Limit) Facts(now meter.Instant) Facts {
	q.roll(now)
	return Facts{
		Size: q.size, Window: q.window, Left: q.left, Basis: q.basis, Level: q.level(now), Rate: q.rate(), Flows: q.flows(), Kind: q.judge.Kind(),
		Reset: q.reset, Asking: q.fresh.IsOpen(), Told: q.left < plentiful && !q.ignored,
	}
}

// Size is how much there is in all, as far as the server said.
func (q *Limit) Size() headers.Opt[float64] { return q.size }

// Counted reports whether requests draw units of q.
func (q *Limit) Counted() bool { return q.counted }

// Ignored reports that nothing speaks for the word of q: it binds nobody.
func (q *Limit) Ignored() bool { return q.ignored }

// Vain and Firm are what the belief in the word of q says of itself.
func (q *Limit) Vain() bool { return q.belief.Vain() }
func (q *Limit) Firm() bool { return q.belief.Firm() }

// Heard is when an answer last spoke of q; zero: none did.
func (q *Limit) Heard() meter.Instant { return q.heard }

// Asking reports whether a new window is asked about.
func (q *Limit) Asking() bool { return q.fresh.IsOpen() }

// Spent reports whether less than a unit is left until a reset, as the last answers said.
func (q *Limit) Spent() bool { return q.left < 1 && q.reset.Known }

// Empty reports whether less than a unit is left, as the last answers said.
func (q *Limit) Empty() bool { return q.left < 1 }

// SpentUntil is until when q is spent by the server's word, as far as that is believed;
// zero: it is not, or binds nobody.
func (q *Limit) SpentUntil(now meter.Instant) meter.Instant {
	if q.roll(now); !q.Spent() || q.ignored {
		return 0
	}
	return q.until()
}

// SpentAt reports whether q was spent at now by the last answers.
func (q *Limit) SpentAt(now meter.Instant) bool { return q.Spent() && now < q.reset.Value }

// ResetAgreed reports whether the reset was said often enough to be waited for, however far it
// is.
func (q *Limit) ResetAgreed(now meter.Instant) bool { return q.reset.Known && q.supported(now) }

// UnderWay is the number of units under way that may be missing from what is left.
func (q *Limit) UnderWay() float64 { return q.flying() }

// Everywhere reports that all processes of the fleet count what they draw of q.
func (q *Limit) Everywhere() bool { return q.shared.based }

// Stale reports whether the server has long ceased to mention q.
func (q *Limit) Stale(now meter.Instant) bool {
	return now.Sub(q.heard) > max(forgetAfter, 2*q.window)
}

// Idle reports whether nothing would be lost by forgetting q.
func (q *Limit) Idle(now meter.Instant) bool {
	q.roll(now)
	return !q.reset.Known || q.left >= q.sizeOr(plentiful) || q.ignored
}

// Remaining is what an answer says is left.
func Remaining(l *headers.Limit) (float64, bool) {
	switch {
	case l.Remaining.Known:
		return l.Remaining.Value, true
	case l.Quota.Known && l.Used.Known:
		return max(0, l.Quota.Value-l.Used.Value), true
	}
	return 0, false
}

// Exhausted reports that a refusal was this quota's doing, as far as the
// answer tells.
func Exhausted(l *headers.Limit) bool {
	if left, ok := Remaining(l); ok {
		return left <= 0
	}
	return l.UsedRatio.Known && l.UsedRatio.Value >= 1
}

// Finer is a reset stated in whole seconds, or the Retry-After beside it on an
// answer that was no refusal, if that is the same meter.Instant told more finely
// (rate-limiter-flexible). A date and the server's clock may both be rounded,
// so the two can differ by 2 s, or by 1 s if the reset was cut.
func Finer(reset, after headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	over := reset.Value - after.Value
	if !reset.Known || !after.Known || reset.Value%time.Second != 0 || after.Value%time.Second == 0 ||
		over <= -time.Second || over >= 2*time.Second {
		return reset
	}
	return after
}
