package learn

import (
	"cmp"
	"math"
	"slices"
)

// fit computes the size and the score of a candidate from the whole log, and its state at the
// end of it.
func (b *bank) fit(c *candidate, p *replay) { b.beats(c, math.Inf(-1), p) }

// beats reports whether the score of a candidate is more than least. Only then it does what fit does.
func (b *bank) beats(c *candidate, least float64, p *replay) bool {
	lent, outages := b.kin.lends(c), 0.0
	if c.ban == 0 {
		outages = b.unexplained() + b.kin.banned()
	}
	most := lent - c.prior - outages - least + almost // so much against it is too much: hints make no score higher
	if most <= 0 {
		return false
	}
	p.run(&c.shape, &b.record, b.timing)
	risen := p.risen
	if c.family == atOnce {
		p.risen = b.shown.into(p)
	}
	size, against, doubt := p.size(c.size, most)
	p.risen = risen
	if size == 0 {
		return false
	}
	c.size, c.against = size, against
	c.score = p.told(&c.shape, c.size, &b.record, b.timing) + lent - c.prior - c.against - doubt - outages
	c.state = p.end
	return c.score > least
}

// refit judges all candidates anew, but proposes none.
func (b *bank) refit() {
	var p replay
	b.rise(&p)
	for i := range b.of {
		b.fit(&b.of[i], &p)
	}
	b.weigh()
}

// outgrown is how many times what they bear has to be accepted to show that the limit has risen,
// where several candidates are likely only together. With 2, the mean badness of 2400 cases of train
// was .010 more, and limits that rose by three fifths or doubled were found less often.
const outgrown = 1.5

// rise notes when more was accepted than the likeliest candidates bear. The limit may have risen
// then: what was refused before says nothing of what it is now, for odds that are the
// same for all candidates. It has not risen if one of those that are likelier than that bears all.
// If none has enough weight by itself, all may be wrong in another way, so outgrown times as much must
// have been accepted. It tells the replay, and reports whether that is news.
func (b *bank) rise(p *replay) (news bool) {
	defer func() { p.risen = b.risen }()
	if len(b.of) == 0 {
		return false
	}
	times := 1.0
	if b.of[0].weight < widenAt {
		times = outgrown
	}
	risen, sum, least := uint16(0), 0.0, b.of[0].weight*math.Exp(-riseOdds)
	for i := 0; i < b.live && b.of[i].weight > least; i++ {
		after := b.rose(&b.of[i], times, p)
		if after == 0 {
			return false
		}
		if i == 0 {
			risen = after
		}
		sum += b.of[i].weight
	}
	if sum < widenAt || risen == b.risen {
		return false
	}
	b.risen = risen
	return true
}

// rose is the epoch after which more was accepted last than so many times what c bears; zero: that
// never happened.
func (b *bank) rose(c *candidate, times float64, p *replay) uint16 {
	p.run(&c.shape, &b.record, b.timing)
	for i := p.n - 1; i > 0; i-- {
		if p.slots[i].reached > times*c.size+1+p.blur {
			return p.slots[i-1].epoch
		}
	}
	return 0
}

// rebuild searches for candidates that explain the log better.
func (b *bank) rebuild() {
	var p replay
	b.rise(&p)
	old := b.of
	b.of = make([]candidate, 0, maxCandidates)
	for i := range old {
		b.try(old[i], &p)
	}
	b.propose(func(c candidate) { b.try(c, &p) })
	b.kindred(&p)
	b.scan(&p)
	b.weigh()
	b.surprises = 0
	b.again = b.rise(&p)
	b.regrain()
}

// try takes a candidate in if it is among the likeliest. Of two that differ only by a small part of
// their phase the likelier one stays.
func (b *bank) try(c candidate, p *replay) {
	like := slices.IndexFunc(b.of, func(d candidate) bool { return c.alike(&d) })
	if c.per <= 0 || like >= 0 && b.of[like].phase == c.phase {
		return
	}
	worst := like
	switch {
	case like >= 0:
	case len(b.of) < maxCandidates:
		b.fit(&c, p)
		b.of = append(b.of, c)
		return
	default:
		worst = 0
		for i := range b.of {
			if b.of[i].score < b.of[worst].score {
				worst = i
			}
		}
	}
	if b.beats(&c, b.of[worst].score, p) {
		b.of[worst] = c
	}
}

// weigh sorts the candidates, which were all judged anew, and shares out their weights.
func (b *bank) weigh() {
	slices.SortStableFunc(b.of, func(x, y candidate) int { return cmp.Compare(y.score, x.score) })
	sum := 0.0
	for i := range b.of {
		c := &b.of[i]
		c.weight = math.Exp(c.score - b.of[0].score)
		sum += c.weight
	}
	b.live, b.heavy, b.flow = min(1, len(b.of)), 0, b.pace()
	for i := range b.of {
		if b.of[i].weight /= sum; b.of[i].weight >= liveAt {
			b.live = i + 1
		}
		if b.of[i].weight >= heavyAt {
			b.heavy |= 1 << i
		}
	}
	for i := range b.log {
		b.log[i].against = 0
	}
	b.stale = false
}

// regrain makes the log as fine as the leader needs it, but no finer than arrivals are
// known. A leader that is wrong must not blur what would show it.
func (b *bank) regrain() {
	if len(b.of) == 0 {
		return
	}
	c := &b.of[0]
	b.grain = max(leastGrain, min(c.per/128, b.slack))
	if c.family == bucket {
		b.grain = max(leastGrain, min(c.per/4, b.slack))
	}
}
