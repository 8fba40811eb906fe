package learn

import (
	"cmp"
	"math"
	"slices"
)

// scanPhases is from how many phases of a period a scan begins: two that are closer are the same,
// see samePhase.
const scanPhases = 16

// scan proposes phases that no single answer suggests, if no candidate explains the log well: that
// of the leader, made better, and for one usual period after another the best phase of a counter.
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
		if b.fit(&c, p); c.score > best.score {
			best = c
		}
	}
	return best
}

// polish returns c with the phase near its own that explains the log best.
func (b *bank) polish(c candidate, p *replay) candidate {
	for step := c.per / scanPhases / 2; step > b.slack/4; step /= 2 { // a quarter of the doubt about arrivals makes no difference
		for _, by := range [...]Instant{-step, step} {
			d := c
			d.phase = mod(c.phase+by, c.per)
			if b.fit(&d, p); d.score > c.score {
				c = d
			}
		}
	}
	return c
}
