package learn

import (
	"cmp"
	"math"
	"slices"
)

// scanPhases is from how many phases of a period a scan begins: two that are closer are the same,
// see samePhase.
const scanPhases = 16

// scan proposes what no single answer suggests, if no candidate explains the log well: the leader
// with a better period, or rate, and phase, and for one usual period after another the best phase of
// a counter.
// As a counter forgets a window bit by bit, neither what it refuses nor what it accepts shows its
// borders.
func (b *bank) scan(p *replay) {
	if len(b.of) == 0 {
		return
	}
	c := slices.MaxFunc(b.of, func(x, y candidate) int { return cmp.Compare(x.score, y.score) })
	b.fit(&c, p)
	if against, doubt := p.penalty(c.size); against+doubt < contradicted*float64(b.recent()) {
		return
	}
	b.try(b.tune(c, p), p)
	if c.family == windowClock || c.family == counter {
		b.try(b.polish(c, p), p)
	}
	if u := b.nextUsual(); u.per > 0 {
		b.try(b.polish(b.bestPhase(u, p), p), p)
	}
}

// nextUsual is the next of the usual periods of which the log has a whole one; zero: it has none.
func (b *bank) nextUsual() usualPeriod {
	for range usual {
		u := usual[b.scanned%len(usual)]
		b.scanned++
		if len(b.log) > 0 && b.log[len(b.log)-1].at-b.log[0].at >= Instant(u.per) {
			return u
		}
	}
	return usualPeriod{}
}

// bestPhase is the counter of a period that explains the log best, of scanPhases phases.
func (b *bank) bestPhase(u usualPeriod, p *replay) (best candidate) {
	best.score = math.Inf(-1)
	for i := range Instant(scanPhases) {
		c := candidate{shape: shape{family: counter, per: Instant(u.per), phase: i * Instant(u.per) / scanPhases}, prior: u.cost + rareCounter + lonePhase}
		if b.beats(&c, best.score, p) {
			best = c
		}
	}
	return best
}

// tune returns c with the period near its own that explains the log best, or the rate of a bucket.
// At first, those on both sides of it are an eighth away: the usual ones are hardly further apart.
// Those that differ by a hundredth are alike.
func (b *bank) tune(c candidate, p *replay) candidate {
	if c.family == atOnce {
		return c
	}
	for step := 1.0 / 8; step > 1.0/128; step /= 2 {
		for _, by := range [...]float64{1 - step, 1 + step} {
			d := c.near(by, step/4, b.log[len(b.log)-1].at)
			if b.beats(&d, c.score, p) {
				c = d
			}
		}
	}
	return c
}

// near returns c with the roundest rate, or period, that is by times its own, give or take the part
// within. The last border of a clock before now stays.
func (c candidate) near(by, within float64, now Instant) candidate {
	if c.family == bucket {
		r := c.rate(1) * by
		r = roundest(r*(1-within), r*(1+within))
		c.per, c.prior = max(1, Instant(1e9/r)), .8+.5*odd(r)
		return c
	}
	border, was := now-mod(now-c.phase, c.per), c.per
	p := float64(was) / 1e9 * by
	c.per = max(1, Instant(roundest(p*(1-within), p*(1+within))*1e9)) // without a length nothing can be divided by it
	c.prior += oddPeriod(c.per) - oddPeriod(was)
	if c.family == windowClock || c.family == counter {
		c.phase = mod(border, c.per)
	}
	return c
}

// polish returns c with the phase near its own that explains the log best.
func (b *bank) polish(c candidate, p *replay) candidate {
	for step := c.per / scanPhases / 2; step > b.slack/4; step /= 2 { // a quarter of the doubt about arrivals makes no difference
		for _, by := range [...]Instant{-step, step} {
			d := c
			d.phase = mod(c.phase+by, c.per)
			if b.beats(&d, c.score, p) {
				c = d
			}
		}
	}
	return c
}
