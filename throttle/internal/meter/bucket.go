package meter

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a token bucket. It uses a rate.Limiter as its account, but not its waiters.
// Its zero value is not ready; fill makes it so. Tokens may be negative: that is a debt,
// which flows in before later grants.
//
// While the bucket has a token or more, tokens is all that is needed. A limiter is made
// when it has less, and dropped when the bucket is full again. Most keys never need one.
type bucket struct {
	tokens float64 // as of seen
	seen   Instant
	gaps   gaps
	scarce *scarce // nil: none of it
}

// scarce is the part of a bucket that only some need: those that ran short, were paused,
// or count what is in transit.
type scarce struct {
	lim       *rate.Limiter // nil: the bucket has not run short since it was full
	noted     float64       // taken, but not charged to lim yet: that is done in one step when the bucket runs short again
	since     Instant       // when the first of noted was taken
	drained   float64       // tokens that drain took
	end       Instant       // of the pause for which it took them
	inTransit inTransit
}

// rare returns b.scarce, and makes it if there is none.
func (b *bucket) rare() *scarce {
	if b.scarce == nil {
		b.scarce = new(scarce)
	}
	return b.scarce
}

// fill makes b a bucket of the given size that holds so many tokens at now. They may be
// negative.
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
	// A limiter is empty at the time at which its limit is set. If that is so long ago
	// as the tokens take to flow in, it has them now. It counts in whole nanoseconds, so
	// a small part of a token may be missing; short forgives that.
	ago := min((tokens+whole)/perSecond*1e9, float64(math.MaxInt64/4))
	from := (now - Instant(ago)).Time()
	x.lim.SetLimitAt(from, rate.Limit(perSecond))
	x.lim.SetBurstAt(from, size)
	x.owe(from, size, whole)
}

// owe takes n tokens, more than there are, by reservations. If an int has 32 bits it stops
// at some 10^12 tokens, as more steps would take minutes; bucket.tokens has the whole debt.
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

// look brings tokens up to date, as lim.TokensAt would. Unlike that it leaves room for
// tokens in transit.
func (b *bucket) look(now Instant, s *Rate) {
	if now > b.seen { // often it is not: Take follows At at the same instant
		b.flow(now, s)
	}
}

// flow lets tokens flow in until now.
func (b *bucket) flow(now Instant, s *Rate) {
	if y := b.under(b.seen, s); y > 0 {
		// There was no call since then, so they were in transit until the last span
		// that counts them ended.
		if b.rise(min(now, b.scarce.inTransit.begins+2*s.span), s, s.Burst-int(y)); b.seen == now {
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

// at is the earliest instant at which the bucket has n tokens, or is full if n is larger.
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

// short reports whether tokens are missing, apart from errors of rounding. These are up to
// a billionth of a token, or for high rates what flows in within a thousandth of a
// nanosecond.
func (s *Rate) short(missing float64) bool {
	return missing > 1e-9 && missing > s.perSecond*1e-12
}

// take takes n tokens, whether they are there or not. If held, answered or back follows.
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

// spend charges n tokens to the limiter, now or later. The bucket had was before them.
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

// charge charges to lim what is noted, at the time when the first of it was taken. At a
// later time lim might have been full meanwhile, and what flows into a full one is lost.
func (x *scarce) charge(s *Rate) {
	t, size := x.since.Time(), s.Burst
	if x.noted > float64(size) || !x.lim.AllowN(t, int(x.noted)) {
		x.owe(t, size, x.noted)
	}
	x.noted = 0
}

// answered says that the answer came for n tokens that were taken at at.
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

// drain takes so many tokens that the bucket will have no more than one at until.
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

// resume gives back what drain took, for a pause that ends before its time. The bucket
// then has one token at most.
func (b *bucket) resume(now Instant, s *Rate) {
	b.look(now, s)
	if there := min(b.undrained(now), 1); there > b.tokens {
		b.fill(now, s.perSecond, s.Burst, there)
	}
	b.unpause()
}

// unpause forgets the last pause, but gives nothing back.
func (b *bucket) unpause() {
	if b.scarce != nil {
		b.scarce.drained, b.scarce.end = 0, 0
	}
}

// pause is the end of the last pause for which tokens were drained; zero: there was none.
func (b *bucket) pause() Instant {
	if b.scarce == nil {
		return 0
	}
	return b.scarce.end
}

// undrained is how many tokens there would be, at the time of the last look, if the pause
// that now is in had taken none.
func (b *bucket) undrained(now Instant) float64 {
	if now >= b.pause() {
		return b.tokens
	}
	return b.tokens + b.scarce.drained
}

// used is how many tokens of a full bucket were taken, without those that a pause took.
func (b *bucket) used(now Instant, s *Rate) float64 {
	b.look(now, s)
	return max(0, float64(s.Burst)-b.undrained(now))
}

// begin sets the bucket to so many tokens. If pause, the end of a pause, is later than
// now, it drains them for that.
func (b *bucket) begin(now Instant, s *Rate, tokens float64, pause Instant) {
	b.fill(now, s.perSecond, s.Burst, tokens)
	if b.unpause(); pause > now {
		b.drain(now, pause, s)
	}
}

// state puts what is in the bucket into s.
func (b *bucket) state(now Instant, r *Rate, s *State) {
	if b.look(now, r); b.tokens < s.Left {
		s.Left = b.tokens
	}
	if in := float64(r.Burst) - b.tokens; in > 1e-9 {
		s.Full, s.Idle = max(s.Full, now.Add(Seconds(in/r.perSecond))), false
	}
}
