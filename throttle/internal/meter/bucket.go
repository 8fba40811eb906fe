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
// As long as there is plenty, tokens is all there is to know. There is a limiter from
// when the bucket runs short until it is full: most keys never run short.
type bucket struct {
	tokens float64 // as of seen
	seen   Instant
	gaps   gaps
	scarce *scarce // nil: none of it
}

// scarce is what a bucket needs that ran short, was paused or counts what is in
// transit, so that those which did not are small.
type scarce struct {
	lim       *rate.Limiter // nil: there is plenty
	noted     float64       // taken, not charged to lim: that is done in one step when the bucket runs short again
	since     Instant       // when the first of it was taken
	drained   float64       // tokens that drain took
	end       Instant       // of the pause it took them for
	inTransit inTransit
}

// rare is b.scarce, made if need be.
func (b *bucket) rare() *scarce {
	if b.scarce == nil {
		b.scarce = new(scarce)
	}
	return b.scarce
}

// fill makes b a bucket that holds tokens of size at now, at any level.
func (b *bucket) fill(now Instant, perSecond float64, size int, tokens float64) {
	if b.tokens, b.seen = tokens, now; tokens < 1 {
		b.open(now, perSecond, size, tokens)
	} else if b.scarce != nil {
		b.scarce.lim, b.scarce.noted = nil, 0
	}
}

// open makes the limiter of a bucket that held so many tokens at now.
func (b *bucket) open(now Instant, perSecond float64, size int, tokens float64) {
	x := b.rare()
	x.lim, x.noted = new(rate.Limiter), 0
	whole := 0.0
	if tokens < 0 {
		whole = math.Ceil(-tokens)
	}
	// A limiter starts empty where its limit is set: that long ago, it has
	// them now. It counts in whole nanoseconds, so that part of a token may be
	// missing there, which a wait must not show.
	ago := min((tokens+whole)/perSecond*1e9, float64(math.MaxInt64/4))
	from := (now - Instant(ago)).Time()
	x.lim.SetLimitAt(from, rate.Limit(perSecond))
	x.lim.SetBurstAt(from, size)
	x.owe(from, size, whole)
}

// owe takes n tokens whatever there is: a debt, by reservations. Where an int
// is small it stops at some 10^12, lest it take minutes: tokens knows the rest.
func (x *scarce) owe(t time.Time, size int, n float64) {
	for range 1000 {
		if n <= 0 {
			return
		}
		step := int(min(n, math.MaxInt/2))
		x.lim.SetBurstAt(t, max(size, step)) // a raised burst adds no tokens
		x.lim.ReserveN(t, step)
		x.lim.SetBurstAt(t, size)
		n -= float64(step)
	}
}

// look brings tokens up to date, as lim.TokensAt would but for what is in transit.
func (b *bucket) look(now Instant, s *Rate) {
	if now > b.seen { // a call saved: a grant follows the question at the same instant
		b.flow(now, s)
	}
}

// flow lets tokens flow in until now.
func (b *bucket) flow(now Instant, s *Rate) {
	if y := b.under(b.seen, s); y > 0 {
		// Nobody has looked since: they are in transit until all of them are old.
		if b.rise(min(now, (b.seen/s.span+2)*s.span), s, s.Burst-int(y)); b.seen == now {
			return
		}
	}
	b.rise(now, s, s.Burst)
}

// under is how many tokens are in transit at now.
func (b *bucket) under(now Instant, s *Rate) int64 {
	if b.scarce == nil {
		return 0
	}
	return b.scarce.inTransit.count(now, s.span)
}

// rise lets tokens flow in until now, up to most.
func (b *bucket) rise(now Instant, s *Rate, most int) {
	b.tokens += float64(now-b.seen) / 1e9 * s.perSecond
	b.seen = now
	if b.tokens < float64(most) {
		return
	}
	b.tokens = float64(most)
	if x := b.scarce; x != nil {
		if x.noted = 0; most == s.Burst {
			x.lim = nil
		}
	}
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
	if n > int64(s.Burst)-b.under(now, s) {
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
		b.rare().inTransit.add(now, s.span, n)
	}
	was := b.tokens
	if b.tokens -= float64(n); b.tokens < 1 || b.scarce != nil && b.scarce.lim != nil {
		b.spend(now, s, was, float64(n))
	}
	return m
}

// spend charges n of so many tokens to the limiter, now or later.
func (b *bucket) spend(now Instant, s *Rate, was, n float64) {
	if b.scarce == nil || b.scarce.lim == nil {
		b.open(now, s.perSecond, s.Burst, was)
	}
	x := b.scarce
	if x.noted == 0 {
		x.since = now
	}
	if x.noted += n; b.tokens < 1 || x.noted > float64(s.Burst) {
		x.charge(s)
	}
}

// charge charges what is noted as of the first of it: since then lim may have
// been full, and what flows into it then is lost.
func (x *scarce) charge(s *Rate) {
	t, size := x.since.Time(), s.Burst
	if x.noted > float64(size) || !x.lim.AllowN(t, int(x.noted)) {
		x.owe(t, size, x.noted)
	}
	x.noted = 0
}

// answered says that the answer came for n tokens taken at at.
func (b *bucket) answered(now Instant, s *Rate, n int64, at Instant) {
	b.look(now, s)
	if b.scarce != nil {
		b.scarce.inTransit.drop(now, at, s.span, n)
	}
}

// back returns n tokens of a grant, less what has overflowed since.
func (b *bucket) back(now Instant, s *Rate, n int64, grant Token) {
	b.look(now, s)
	if left := b.gaps.give(grant, float64(n), b.tokens, s.Burst-int(b.under(now, s))); left > 0 {
		b.fill(now, s.perSecond, s.Burst, b.tokens+left)
	}
}

// drain sees to it that no more than one token is there at until.
func (b *bucket) drain(now, until Instant, s *Rate) {
	b.look(now, s)
	there := 1 - until.Until(now).Seconds()*s.perSecond
	x := b.rare()
	if now >= x.end {
		x.drained, x.end = 0, 0
	}
	if x.end = max(x.end, until); b.tokens > there {
		x.drained += b.tokens - there
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
	b.unpause()
}

// unpause forgets the last pause.
func (b *bucket) unpause() {
	if b.scarce != nil {
		b.scarce.drained, b.scarce.end = 0, 0
	}
}

// pause is until when the last pause is for which tokens were drained; zero: there is none.
func (b *bucket) pause() Instant {
	if b.scarce == nil {
		return 0
	}
	return b.scarce.end
}

// undrained is the tokens there would be, as of the last look, had no pause taken any.
func (b *bucket) undrained(now Instant) float64 {
	if now >= b.pause() {
		return b.tokens
	}
	return b.tokens + b.scarce.drained
}

// used is the tokens in use, without those that a pause took.
func (b *bucket) used(now Instant, s *Rate) float64 {
	b.look(now, s)
	return max(0, float64(s.Burst)-b.undrained(now))
}

// begin begins anew with so many tokens, in a pause if that has not ended.
func (b *bucket) begin(now Instant, s *Rate, tokens float64, pause Instant) {
	b.fill(now, s.perSecond, s.Burst, tokens)
	if b.unpause(); pause > now {
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
