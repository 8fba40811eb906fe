package meter

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a token bucket: rate.Limiter as the account, without its waiters.
// Its zero value is not ready; fill makes it so. Tokens may be negative: a debt
// that those who come later wait for.
//
// As long as there is plenty, what is taken is only noted. It is charged in one
// step when the bucket runs short; if it is full before, nothing is left to charge,
// and there need be no limiter: most keys never run short.
type bucket struct {
	lim       *rate.Limiter // nil: it would be full
	noted     float64       // taken, not charged to lim
	since     Instant       // when the first of it was taken
	tokens    float64       // as of seen
	seen      Instant
	drained   float64    // tokens that drain took
	end       Instant    // of the pause it took them for
	inTransit *inTransit // nil: nothing was ever held
	gaps      gaps
}

// fill makes b a bucket that holds tokens of size at now, at any level.
func (b *bucket) fill(now Instant, perSecond float64, size int, tokens float64) {
	if b.tokens, b.seen, b.noted = tokens, now, 0; tokens >= float64(size) {
		b.lim = nil
		return
	}
	b.open(now, perSecond, size, tokens)
}

// open makes the limiter of a bucket that held so many tokens at now.
func (b *bucket) open(now Instant, perSecond float64, size int, tokens float64) {
	b.lim = new(rate.Limiter)
	whole := 0.0
	if tokens < 0 {
		whole = math.Ceil(-tokens)
	}
	// A limiter starts empty where its limit is set: that long ago, it has
	// them now. It counts in whole nanoseconds, so that part of a token may be
	// missing there, which a wait must not show.
	ago := min((tokens+whole)/perSecond*1e9, float64(math.MaxInt64/4))
	from := (now - Instant(ago)).Time()
	b.lim.SetLimitAt(from, rate.Limit(perSecond))
	b.lim.SetBurstAt(from, size)
	b.owe(from, size, whole)
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

// look brings tokens up to date, as lim.TokensAt would but for what is in transit.
func (b *bucket) look(now Instant, s *Rate) {
	if now <= b.seen {
		return
	}
	if y := b.inTransit.count(b.seen, s.span); y > 0 {
		// Nobody has looked since: they are in transit until all of them are old.
		if b.flow(min(now, (b.seen/s.span+2)*s.span), s, s.Burst-int(y)); b.seen == now {
			return
		}
	}
	b.flow(now, s, s.Burst)
}

// flow lets tokens flow in until now, up to most.
func (b *bucket) flow(now Instant, s *Rate, most int) {
	b.tokens += float64(now-b.seen) / 1e9 * s.perSecond
	if b.tokens >= float64(most) {
		if b.tokens, b.noted = float64(most), 0; most == s.Burst {
			b.lim = nil
		}
	}
	b.seen = now
}

// at is the earliest instant at which n tokens, or all there can be, are there.
func (b *bucket) at(now Instant, s *Rate, n int64) Instant {
	b.look(now, s)
	n = min(n, int64(s.Burst))
	missing := float64(n) - b.tokens
	if !s.short(missing) {
		return now
	}
	t := now.Add(Seconds(missing / s.perSecond))
	if n > int64(s.Burst)-b.inTransit.count(now, s.span) {
		t = max(t, (now/s.span+1)*s.span) // or when answers come
	}
	return t
}

// short reports whether so many tokens are missing, and not for rounding alone.
func (s *Rate) short(missing float64) bool {
	return missing > 1e-9 && missing > s.perSecond*1e-12
}

// take takes n tokens, be they there or not. If held, answered or back follows.
func (b *bucket) take(now Instant, s *Rate, n int64, held bool) Token {
	b.look(now, s)
	m := b.gaps.note(b.tokens, s.Burst)
	if held && s.span > 0 {
		if b.inTransit == nil {
			b.inTransit = new(inTransit)
		}
		b.inTransit.add(now, s.span, n)
	}
	if b.noted == 0 {
		b.since = now
	}
	b.tokens -= float64(n)
	if b.noted += float64(n); b.tokens < 1 || b.noted > float64(s.Burst) {
		b.charge(s)
	}
	return m
}

// charge charges what is noted as of the first of it: since then lim may have
// been full, and what flows into it then is lost.
func (b *bucket) charge(s *Rate) {
	t, size := b.since.Time(), s.Burst
	if b.lim == nil {
		b.open(b.since, s.perSecond, size, float64(size))
	}
	if b.noted > float64(size) || !b.lim.AllowN(t, int(b.noted)) {
		b.owe(t, size, b.noted)
	}
	b.noted = 0
}

// answered says that the answer came for n tokens taken at at.
func (b *bucket) answered(now Instant, s *Rate, n int64, at Instant) {
	b.look(now, s)
	b.inTransit.drop(now, at, s.span, n)
}

// back returns n tokens of a grant, less what has overflowed since.
func (b *bucket) back(now Instant, s *Rate, n int64, grant Token) {
	b.look(now, s)
	if left := b.gaps.give(grant, float64(n), b.tokens, s.Burst-int(b.inTransit.count(now, s.span))); left > 0 {
		b.fill(now, s.perSecond, s.Burst, b.tokens+left)
	}
}

// drain sees to it that no more than one token is there at until.
func (b *bucket) drain(now, until Instant, s *Rate) {
	b.look(now, s)
	there := 1 - until.Until(now).Seconds()*s.perSecond
	if now >= b.end {
		b.drained, b.end = 0, 0
	}
	if b.end = max(b.end, until); b.tokens > there {
		b.drained += b.tokens - there
		b.fill(now, s.perSecond, s.Burst, there)
	}
}

// resume undoes drain for a pause that ends before its time: the flow resumes
// now, from one token at most.
func (b *bucket) resume(now Instant, s *Rate) {
	b.look(now, s)
	if there := min(b.undrained(now), 1); there > b.tokens {
		b.fill(now, s.perSecond, s.Burst, there)
	}
	b.drained, b.end = 0, 0
}

// undrained is the tokens there would be, as of the last look, had no pause taken any.
func (b *bucket) undrained(now Instant) float64 {
	if now >= b.end {
		return b.tokens
	}
	return b.tokens + b.drained
}

// used is the tokens in use, without those that a pause took.
func (b *bucket) used(now Instant, s *Rate) float64 {
	b.look(now, s)
	return max(0, float64(s.Burst)-b.undrained(now))
}

// begin begins anew with so many tokens, in a pause if that has not ended.
func (b *bucket) begin(now Instant, s *Rate, tokens float64, pause Instant) {
	b.fill(now, s.perSecond, s.Burst, tokens)
	b.drained, b.end = 0, 0
	if pause > now {
		b.drain(now, pause, s)
	}
}

// state tells s what is in the bucket.
func (b *bucket) state(now Instant, r *Rate, s *State) {
	if b.look(now, r); b.tokens < s.Left {
		s.Left = b.tokens
	}
	if in := float64(r.Burst) - b.tokens; in > 1e-9 {
		s.Full, s.Idle = max(s.Full, now.Add(Seconds(in/r.perSecond))), false
	}
}
