package learn

import "time"

// opens is when the stated limits have room for n units, and whether they say
// so themselves. by is the one that has none.
func (m *mind) opens(now Instant, n float64) (at Instant, sure bool, by *stated) {
	at = now
	for i := range m.said {
		g := &m.said[i]
		if t, s := m.room(g, now, n); t > at {
			at, sure, by = t, s, g
		}
	}
	return at, sure, by
}

func (m *mind) room(g *stated, now Instant, n float64) (at Instant, sure bool) {
	if g.liar >= 2 || g.seen == 0 || g.reset == 0 {
		return now, false
	}
	after := m.bank.sentAfter(g.seen)
	arrival := now + m.bank.half
	if !g.agreed && g.reset-g.heard > g.most {
		if now >= g.heard+g.most {
			return now, false
		}
		if g.left-after < n {
			return g.heard + g.most, false
		}
	}
	if arrival < g.reset {
		free := g.left - after
		if g.flows > 0 {
			free += g.flows * float64(arrival-g.seen) / 1e9
		}
		if free >= n {
			return now, false
		}
		if g.flows > 0 {
			return min(g.reset-m.bank.half, now+Instant((n-free)/g.flows*1e9)), false
		}
		return g.reset - m.bank.half, true
	}
	if m.asks(g, n, after) {
		return never, false
	}
	return now, false
}

// asks reports whether, after a reset, an answer has to come first. What is back
// then is known only where it was seen.
func (m *mind) asks(g *stated, n, after float64) bool {
	since := m.bank.sentAfter(g.reset - m.bank.half - 1)
	most := 1.0
	if g.full > 0 && g.limit > 0 {
		most = g.limit
	}
	if g.left-after >= n {
		most = max(most, g.left-after+since)
	}
	if !g.always && m.served >= g.reset-m.bank.half {
		return false // what is left is not said on acceptances: the candidates know better
	}
	return since+n > most && m.bank.underWay(g.reset-m.bank.half-1) > 0
}

// probe is when one request may be sent before a reset, to see whether units
// come back before it; zero: not. Resets in whole seconds hide fast buckets: one
// of 5 at 20/s says 1 s and gives 5 a second for ever to who believes it.
func (m *mind) probe(g *stated, now Instant, waiting int) Instant {
	if waiting < manyWait || g.skip > 0 || g.probed > g.seen || m.bank.busy > 0 {
		return 0
	}
	if g.reset-g.heard > 2*Instant(time.Second) {
		return 0
	}
	return (g.heard + g.reset) / 2
}

// underWay is how many of those sent since then are not answered yet.
func (r *record) underWay(since Instant) (n int) {
	for i := len(r.log) - 1; i >= 0 && r.log[i].last >= since; i-- {
		n += int(r.log[i].under)
	}
	return n
}
