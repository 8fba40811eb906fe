package learn

import "slices"

// A look is a single request that is sent before its time, to find out whether the limit
// has risen since the last refusal. If it is accepted, a climb begins.
//
// Nothing tells those who wait of a rise, so that they look when they are likely to have
// missed more than a look costs. How likely a rise is follows from how long the limit has
// held: one that has held for so long holds for as long again. So the time between two
// looks grows with the root of that, and is short again after a rise.
type look struct {
	since  Instant // when the limit was found, or its last rise; zero: nothing was refused
	waited Instant // for so long somebody has waited since the last refusal
	at     Instant // when the last was sent
	cost   Instant // by how much later than due the next was accepted after the last was refused
	shut   Instant // how long after it that was
}

const (
	looksAfter = 60e9  // so long a limit counts as held when it is found
	heldMost   = 600e9 // and at most so long: of what a server did longer ago, little follows
	missed     = .3    // of the time is missed since a rise: half of the time since the last refusal, and three fifths of that, as most limits rise 2.5 times
	costMost   = 6e10  // is the longest wait that is blamed on a look
	costHint   = .5    // of what the last hint says a look costs as long as none has: every other server says when there is room, others always the same
	lookSure   = .3    // weighs the leader at least: a weaker one is no limit that could have risen. With 0, raised quotas are found after 101 s instead of 137 s (p90, train), and buckets of odd rates are taken for others
	lookEarly  = 1.5   // times the doubt about arrivals before there is room: then nothing but a rise explains that one passes
	vainAt     = .9    // weighs a leader for whom a look that was refused is no news
)

// changed is how likely the limit has changed since the last refusal.
func (k *look) changed(now, refused Instant) float64 {
	s := float64(now - refused)
	return s / (s + looksAfter + min(heldMost, float64(refused-k.since)))
}

// look moves a plan forward if those who wait have missed more than that costs.
func (c *climb) look(now, base Instant, p Plan, m *mind) Plan {
	lead := &m.bank.of[0]
	if lead.family == atOnce || lead.weight < lookSure {
		return p
	}
	unit := lead.unit()
	at := max(now, base+Instant(climbStep*min(float64(p.At-base), unit)))
	if full := m.bank.full(lead, now); at > full && (full > base || lead.family != bucket) {
		if at = max(now, full); at > full {
			return p // it may pass whatever has changed
		}
	}
	price := max(leastPrice, float64(2*m.bank.mean), c.dear(at, p.At, m.bank.paused), unit, float64(lead.ban))
	if missed*c.seen.changed(now, m.refused)*float64(c.seen.waited) < price {
		return p
	}
	p = c.early(now, at, base, p)
	c.first = max(c.first, Instant(climbStep*unit))
	return p
}

// dear is by how much later than due the next is accepted if a look at at is refused. Some
// servers shut out for as long as it takes until there is room, others for a fixed time.
func (c *climb) dear(at, due, paused Instant) float64 {
	switch {
	case c.seen.cost > 0:
		return float64(at + c.seen.shut - due)
	case c.seen.shut == 0:
		return costHint * float64(at+paused-due)
	}
	return 0
}

// full is until when one that is sent finds no room with c, however far off arrivals are.
func (b *bank) full(c *candidate, now Instant) Instant {
	return c.shape.ready(c.state, c.size, 1, now+b.half, b.log, b.half) - b.half - Instant(lookEarly*float64(b.slack))
}

// unit is how long one more takes at c's rate.
func (c *candidate) unit() float64 { return min(1e9/max(1e-4, c.rate(c.size)), 6e10) }

// vain reports whether a refusal is that of a look, and the leader, of which there is
// hardly a doubt, had foreseen it.
func (m *mind) vain(sent Instant) bool {
	b := &m.bank
	if m.climb.probe != sent || m.climb.won > 0 || len(b.of) == 0 || b.of[0].weight < vainAt {
		return false
	}
	if k := len(b.epochs); k > 0 && sent < b.epochs[k-1].heard {
		return false
	}
	l := b.find(sent)
	return l != nil && l.against&1 != 0
}

// looked notes that a look was in vain. It is no epoch: these are kept for refusals that
// tell more.
func (m *mind) looked(now, sent, hint Instant, n int) {
	m.bank.bounced(sent, n)
	if hint >= 0 {
		m.pause, m.bank.paused = max(m.pause, now+hint), hint
	}
	if m.taken >= m.refused {
		m.streak = now
	}
	m.refused = now
	m.climb.refused(now, sent, &m.bank)
}

// bounced notes that n units were refused, which changes no candidate but where it stands:
// a log that does not reach back to the start any more would show buckets emptier.
func (b *bank) bounced(sent Instant, n int) {
	l := b.find(sent)
	l.under -= min(l.under, uint16(n))
	l.refused += uint16(n)
	if b.stale {
		return
	}
	k := slices.IndexFunc(b.log, func(x rec) bool { return x.at == l.at })
	for i := range b.of[:b.live] {
		c := &b.of[i]
		c.takeBack(&c.state, k, l.last+b.half, float64(n))
		c.refuses(&c.state, l.last+b.half, b.slack)
	}
}
