package throttle

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What the arithmetic of budgets is made of.
type instant = meter.Instant

const (
	never   = meter.Never
	unknown = meter.Unknown
)

// bucket is a token bucket: rate.Limiter as the account, without its waiters.
// Its zero value is not ready; fill makes it so. Tokens may be negative: a debt
// that those who come later wait for.
//
// As long as there is plenty, what is taken is only noted. It is charged in one
// step when the bucket runs short; if it is full before, nothing is left to charge.
type bucket struct {
	lim    rate.Limiter
	noted  float64 // taken, not charged to lim
	since  instant // when the first of it was taken
	tokens float64 // as of seen
	seen   instant
	hushed float64 // tokens that quiet took
	end    instant // of the pause it took them for
	young  young
	gaps   gaps
}

// fill makes b a bucket that holds tokens of size at now, at any level.
func (b *bucket) fill(now instant, perSecond float64, size int, tokens float64) {
	b.lim = rate.Limiter{}
	whole := 0.0
	if tokens < 0 {
		whole = math.Ceil(-tokens)
	}
	// A limiter starts empty where its limit is set: that long ago, it has
	// them now. It counts in whole nanoseconds, so that part of a token may be
	// missing there, which a wait must not show.
	ago := min((tokens+whole)/perSecond*1e9, float64(math.MaxInt64/4))
	from := (now - instant(ago)).Time()
	b.lim.SetLimitAt(from, rate.Limit(perSecond))
	b.lim.SetBurstAt(from, size)
	b.owe(from, size, whole)
	b.tokens, b.seen, b.noted = tokens, now, 0
}

// owe takes n tokens whatever there is: a debt, by reservations. Where an int
// is small it stops at some 10^12, lest it take minutes: tokens knows the rest.
func (b *bucket) owe(t time.Time, size int, n float64) {
	for range 1000 {
		if n <= 0 {
			return
		}
		step := int(min(n, math.MaxInt/2))
		b.lim.SetBurstAt(t, max(size, step)) // a raised burst adds no tokens
		b.lim.ReserveN(t, step)
		b.lim.SetBurstAt(t, size)
		n -= float64(step)
	}
}

// look brings tokens up to date, as lim.TokensAt would but for what is young.
func (b *bucket) look(now instant, s *rateSpec) {
	if now <= b.seen {
		return
	}
	if y := b.young.count(b.seen, s.span); y > 0 {
		// Nobody has looked since: they are young until all of them are old.
		if b.flow(min(now, (b.seen/s.span+2)*s.span), s, s.size-int(y)); b.seen == now {
			return
		}
	}
	b.flow(now, s, s.size)
}

// flow lets tokens flow in until now, up to most.
func (b *bucket) flow(now instant, s *rateSpec, most int) {
	b.tokens += float64(now-b.seen) / 1e9 * s.perSecond
	if b.tokens >= float64(most) {
		b.tokens, b.noted = float64(most), 0
	}
	b.seen = now
}

// at is the earliest instant at which n tokens, or all there can be, are there.
func (b *bucket) at(now instant, s *rateSpec, n int64) instant {
	b.look(now, s)
	n = min(n, int64(s.size))
	missing := float64(n) - b.tokens
	if !s.short(missing) {
		return now
	}
	t := now.Add(nanos(missing / s.perSecond))
	if n > int64(s.size)-b.young.count(now, s.span) {
		t = max(t, (now/s.span+1)*s.span) // or when answers come
	}
	return t
}

// short reports whether so many tokens are missing, and not for rounding alone.
func (s *rateSpec) short(missing float64) bool {
	return missing > 1e-9 && missing > s.perSecond*1e-12
}

// nanos is a time in whole nanoseconds, rounded up but for a thousandth that
// comes from rounding, at least one, and capped.
func nanos(seconds float64) time.Duration {
	ns := math.Ceil(seconds*1e9 - 1e-3)
	if !(ns < float64(math.MaxInt64/2)) {
		return math.MaxInt64 / 2
	}
	return max(1, time.Duration(ns))
}

// take takes n tokens, be they there or not. If held, answered or back follows.
func (b *bucket) take(now instant, s *rateSpec, n int64, held bool) mark {
	b.look(now, s)
	m := b.gaps.note(b.tokens, s.size)
	if held && s.span > 0 {
		b.young.add(now, s.span, n)
	}
	if b.noted == 0 {
		b.since = now
	}
	b.tokens -= float64(n)
	if b.noted += float64(n); b.tokens < 1 || b.noted > float64(s.size) {
		b.charge(s.size)
	}
	return m
}

// charge charges what is noted as of the first of it: since then lim may have
// been full, and what flows into it then is lost.
func (b *bucket) charge(size int) {
	t := b.since.Time()
	if b.noted > float64(size) || !b.lim.AllowN(t, int(b.noted)) {
		b.owe(t, size, b.noted)
	}
	b.noted = 0
}

// answered says that the answer came for n tokens taken at at.
func (b *bucket) answered(now instant, s *rateSpec, n int64, at instant) {
	b.look(now, s)
	b.young.drop(now, at, s.span, n)
}

// back returns n tokens of a grant, less what has overflowed since.
func (b *bucket) back(now instant, s *rateSpec, n int64, grant mark) {
	b.look(now, s)
	if left := b.gaps.give(grant, float64(n), b.tokens, s.size-int(b.young.count(now, s.span))); left > 0 {
		b.fill(now, s.perSecond, s.size, b.tokens+left)
	}
}

// quiet sees to it that no more than one token is there at until.
func (b *bucket) quiet(now, until instant, s *rateSpec) {
	b.look(now, s)
	there := 1 - until.Until(now).Seconds()*s.perSecond
	if now >= b.end {
		b.hushed, b.end = 0, 0
	}
	if b.end = max(b.end, until); b.tokens > there {
		b.hushed += b.tokens - there
		b.fill(now, s.perSecond, s.size, there)
	}
}

// wake undoes quiet for a pause that ends before its time: the flow resumes
// now, from one token at most.
func (b *bucket) wake(now instant, s *rateSpec) {
	b.look(now, s)
	if there := min(b.loud(now), 1); there > b.tokens {
		b.fill(now, s.perSecond, s.size, there)
	}
	b.hushed, b.end = 0, 0
}

// loud is the tokens there would be, as of the last look, had no pause taken any.
func (b *bucket) loud(now instant) float64 {
	if now >= b.end {
		return b.tokens
	}
	return b.tokens + b.hushed
}

// used is the tokens in use, without those that a pause took.
func (b *bucket) used(now instant, s *rateSpec) float64 {
	b.look(now, s)
	return max(0, float64(s.size)-b.loud(now))
}

// begin begins anew with so many tokens, in a pause if that has not ended.
func (b *bucket) begin(now instant, s *rateSpec, tokens float64, pause instant) {
	b.fill(now, s.perSecond, s.size, tokens)
	b.hushed, b.end = 0, 0
	if pause > now {
		b.quiet(now, pause, s)
	}
}

// warm is Guava's SmoothWarmingUp: permits stored while idle make those that
// use them slower, and each grant is paid for by the next one.
type warm struct {
	stored float64 // as of next, or later
	next   instant // when the next unit may go
}

// warmSpec holds the constants of a rate that warms up, in seconds and permits.
type warmSpec struct {
	interval, cold float64 // between units, when warm and when cold
	slope          float64
	from, most     float64 // stored permits: where slowness begins, and at most
	refill         float64 // seconds to store one permit
}

// coldFactor is how much slower than the rate a cold host is met.
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
func (w *warm) now(now instant, s *warmSpec) {
	if now > w.next {
		w.stored = min(s.most, w.stored+float64(now-w.next)/1e9/s.refill)
		w.next = now
	}
}

func (w *warm) take(now instant, s *warmSpec, n int64) (next instant) {
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
	w.next = w.next.Add(nanos(wait))
	return w.next
}

// back gives up what of n units' time, which would have ended at next, is
// still to come.
func (w *warm) back(now instant, s *warmSpec, n int64, next instant) {
	left := min(time.Duration(next-now), nanos(float64(n)*s.interval))
	if left > 0 {
		w.next = max(now, w.next-instant(left))
	}
}
