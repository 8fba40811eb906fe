package breaker

import "time"

// What a circuit that is not closed costs its host is a share of what it
// spares it: one probe for every hundred requests that are turned away or made
// to wait. So the time until a host is found to be back depends on how much is
// asked of it, and not on how long it was away: half a second at 200 calls a
// second, after any outage. Probes are never closer together than OpenFor.
// Where so little is asked that a hundred take longer than MaxOpenFor, one goes
// then. The first of an outage goes after firstProbe at the latest, on credit:
// most outages are short, and the hundred are counted twice for the next.

const (
	// share is how many requests one probe stands for. The cost of an outage
	// to the host is 1/share of its load, and the time to notice the end
	// is share calls: a fifth of it would be noticed in a fifth of the time.
	share = 100
	// firstProbe is when an outage is asked about even if few calls come. At
	// 20 calls a second it changes nothing. At one a second a blip of 3 s
	// costs 5 calls instead of a MaxOpenFor's.
	firstProbe = 5 * time.Second
)

// allotment says when probes may go. Its circuit's mu guards it.
type allotment struct {
	spared    int       // requests turned away or made to wait, less share for each probe
	notBefore time.Time // no probe goes before
	latest    time.Time // from then on the next request is one, however few there were
	opened    time.Time // when the circuit was last closed
	arrived   int       // requests that came since the last probe
	asking    time.Time // when the first of them did
	earliest  time.Time // when one in line whose time runs out may be the probe
}

// due reports whether a probe may go. While a vote is under way, which a probe
// that the host answered well has begun, the next one goes at once.
func (c *circuit) due(now time.Time) bool {
	switch {
	case now.Before(c.notBefore):
		return false
	case c.state == HalfOpen && c.good+c.bad > 0:
		return !c.probe.taken(now, c.probeLease())
	}
	return (c.spared >= share || !now.Before(c.latest)) && !c.probe.taken(now, c.cfg.OpenFor)
}

// next is when a probe is due if nobody else comes.
func (c *circuit) next(now time.Time) time.Time {
	at, away := c.notBefore, c.cfg.OpenFor
	switch {
	case c.state == HalfOpen && c.good+c.bad > 0:
		away = c.probeLease()
	case c.spared < share && c.latest.After(at):
		at = c.latest
	}
	if c.probe.id != 0 {
		if back := c.probe.at.Add(away); back.After(now) && back.After(at) {
			at = back
		}
	}
	return at
}

// expected is about when a probe goes if as many come as came lately.
func (c *circuit) expected(now time.Time) time.Time {
	at := c.latest
	if n := share - c.spared; c.arrived > 0 && n > 0 {
		if by := now.Add(now.Sub(c.asking) / time.Duration(c.arrived) * time.Duration(n)); by.Before(at) {
			at = by
		}
	} else if n <= 0 {
		at = now
	}
	if at.Before(c.notBefore) {
		return c.notBefore
	}
	return at
}

// spare counts a request that does not pass.
func (c *circuit) spare(now time.Time) {
	if c.arrived == 0 {
		c.asking = now
	}
	c.arrived++
	c.spared++
}

// spend pays for a probe that begins.
func (c *circuit) spend(now time.Time) {
	c.arrived = 0
	c.spared = max(c.spared-share, -share)
	c.latest = now.Add(jitter(c.longestGap(now), 0, c.cfg.MaxOpenFor))
}

// longestGap is how long nobody asks if hardly anybody comes. Those in line
// (Patience) wait for the probe, not for the traffic: for them the host is asked
// when the outage has lasted twice as long as when it was asked before.
func (c *circuit) longestGap(now time.Time) time.Duration {
	d := c.cfg.MaxOpenFor
	if c.cfg.Patience > 0 {
		d = min(d, max(c.cfg.OpenFor, lastChances, now.Sub(c.opened)))
	}
	return d
}

// refund is for a probe that came to nothing: the next may go at once.
func (c *circuit) refund() { c.spared = max(c.spared, share) }

// allot begins an open period.
func (c *circuit) allot(v verdict, now time.Time) {
	if c.state == Closed {
		c.arrived, c.spared, c.opened = 0, 0, now
		first := min(firstProbe, c.cfg.MaxOpenFor, c.longestGap(now))
		c.latest = now.Add(max(c.cfg.OpenFor, jitter(first, 0, first)))
	} else if c.good > c.slowGood { // it works at times: that is worth asking about
		c.refund()
	}
	c.notBefore = now.Add(jitter(c.cfg.OpenFor, v.retryAfter, c.cfg.MaxOpenFor))
	if c.latest.Before(c.notBefore) {
		c.latest = c.notBefore
	}
	c.earliest = c.notBefore
	if least := now.Add(max(v.retryAfter, min(max(c.cfg.OpenFor, lastChances), c.cfg.MaxOpenFor))); now.Sub(c.opened) > firstProbe && least.After(c.earliest) {
		c.earliest = least
	}
}
