package learn

import (
	"math"
	"slices"
)

// A look is a single request that is sent before the leader has room for it, to find out
// whether the limit has risen since the last refusal. If it is accepted, a climb begins.
//
// A server does not say that a limit has risen. So a look is sent when requests have probably
// missed more time than it costs. The longer a limit has held, the less likely it rises: it is
// assumed to hold for as long again. So the time between two looks grows with the square root
// of that time, and is short again after a rise.
type look struct {
	since  Instant // when the limit was found, or last rose; zero: nothing was refused
	waited Instant // for how long requests have waited since the last refusal
	at     Instant // when the last look was sent
	cost   Instant // after the last look that was refused, by how much later than due a request was accepted
	shut   Instant // how long after that look this was
}

// Times are in nanoseconds.
const (
	// looksAfter is for how long a limit counts as held when it is found, and heldMost the
	// longest time for which it does: older behaviour says little about a server.
	looksAfter = 60e9
	heldMost   = 600e9
	// missed is which part of the time since the last refusal requests miss if the limit has
	// risen: on average it rose half of that time ago, and three fifths of that are missed, as
	// most limits rise to 2.5 times.
	missed = .3
	// costMost is the longest delay that counts as the cost of a look.
	costMost = 6e10
	// costHint is which part of the last hint a look costs, before one has been refused:
	// about half of the servers say when there is room, and others always say the same.
	costHint = .5
	// lookSure is the weight that the leader needs, with those that agree with it: otherwise there
	// is no limit that could have risen. With 0, raised quotas were found sooner on train, but
	// buckets of odd rates were taken for other limits.
	lookSure = .3
	// agreeing is by which part rates of those may differ that agree: shapes that explain the same
	// refusals are off by the doubt about when these began. With .02, the same limits were found.
	agreeing = .1
	// lookEarly is how many times the doubt about arrivals a look is sent before there is
	// room, so that only a rise explains its acceptance.
	lookEarly = 1.5
	// vainAt is the weight of the candidates that foresee it from which on a refused look is no
	// news.
	vainAt = .9
)

// changed is how likely the limit has changed since the last refusal.
func (k *look) changed(now, refused Instant) float64 {
	s := float64(now - refused)
	return s / (s + looksAfter + min(heldMost, float64(refused-k.since)))
}

// look moves a plan earlier, if requests have probably missed more than a look costs. base is
// when the last request was sent or refused.
func (c *climb) look(now, base Instant, p Plan, m *mind) Plan {
	lead := &m.bank.of[0]
	if lead.family == atOnce || m.bank.agreed(math.MaxUint16) < lookSure {
		return p
	}
	unit := lead.unit()
	at := max(now, base+Instant(climbStep*min(float64(p.At-base), unit)))
	if full := m.bank.full(lead, now); at > full && (full > base || lead.family != bucket) {
		if at = max(now, full); at > full {
			return p // it might be accepted without a rise
		}
	}
	price := max(leastPrice, m.delay(), c.dear(at, p.At, m.bank.paused), unit, float64(lead.ban))
	if missed*c.seen.changed(now, m.refused)*float64(c.seen.waited) < price {
		return p
	}
	return c.early(now, at, base, p, lead)
}

// dear is by how much later than due the next request is accepted if a look at at is refused.
// Some servers refuse everything after a refusal until there is room, others for a fixed time.
func (c *climb) dear(at, due, paused Instant) float64 {
	switch {
	case c.seen.cost > 0:
		return float64(at + c.seen.shut - due)
	case c.seen.shut == 0:
		return costHint * float64(at+paused-due)
	}
	return 0
}

// full is until when c certainly has no room for a request that is sent, whatever the doubt
// about arrivals.
func (b *bank) full(c *candidate, now Instant) Instant {
	return c.shape.ready(c.state, c.size, now+b.half, b.log, b.half) - b.half - Instant(lookEarly*float64(b.slack))
}

// agreed is the weight of the leader and of the candidates that are as fast. Of these bit i of among
// says whether candidate i counts.
func (b *bank) agreed(among uint16) float64 {
	lead := &b.of[0]
	rate, w := lead.rate(lead.size), lead.weight
	if lead.family == atOnce {
		return w
	}
	for i := 1; i < len(b.of); i++ {
		if c := &b.of[i]; among&(1<<i) != 0 && c.family != atOnce && math.Abs(c.rate(c.size)-rate) <= agreeing*rate {
			w += c.weight
		}
	}
	return w
}

// unit is the time between two units at c's rate, a minute at most.
func (c *candidate) unit() float64 { return min(1e9/max(1e-4, c.rate(c.size)), 6e10) }

// looks reports whether what was sent then is a look.
func (c *climb) looks(sent Instant) bool { return c.probe == sent && c.won == 0 }

// foreseen reports whether the leader had no room for what was sent then, and there is hardly a doubt
// about it and those that agree with it. So its refusal is no news, unless it is the first.
func (b *bank) foreseen(sent Instant) bool {
	if k := len(b.epochs); k == 0 || sent < b.epochs[k-1].heard {
		return false
	}
	l := b.find(sent)
	return len(b.of) > 0 && l != nil && l.against&1 != 0 && b.agreed(l.against) >= vainAt
}

// looked notes that a look was in vain. It is no epoch: these are kept for refusals that
// tell more.
func (m *mind) looked(now, heard, sent, hint Instant, n int) {
	m.bank.bounced(sent, n)
	if hint >= 0 {
		m.pause, m.bank.paused = max(m.pause, heard+hint), hint
	}
	if m.taken >= m.refused {
		m.streak = now
	}
	m.refused = now
	m.climb.refused(now, sent, &m.bank)
}

// bounced notes that n units were refused. It changes the states of candidates, but judges none
// anew: a log that does not reach back to the start any more would show buckets emptier than
// they are.
func (b *bank) bounced(sent Instant, n int) {
	l := b.find(sent)
	l.under -= min(l.under, uint16(n))
	l.refused += uint16(n)
	if b.stale {
		return
	}
	k := slices.IndexFunc(b.log, func(x entry) bool { return x.at == l.at })
	for i := range b.of[:b.live] {
		c := &b.of[i]
		c.takeBack(&c.state, k, l.last+b.half, float64(n))
		c.refuses(&c.state, l.last+b.half, b.slack)
	}
}
