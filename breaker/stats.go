package breaker

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Stats is what the circuits do at one moment: a plain copy.
type Stats struct {
	Circuits []CircuitStats // those about which there is something to say, by Host and Shard
	Kept     int            // records of hosts kept, with and without a circuit
}

// CircuitStats is one circuit.
type CircuitStats struct {
	Host      string    // canonical
	Shard     string    // eight hex digits; "" without Config.Shard
	State     State     // marshals to its words
	Forced    bool      // an operator holds it so
	Reason    string    // of the last change, in words
	Since     time.Time // when that was; zero: never
	NotBefore time.Time // Open, HalfOpen: when the next request is a probe, however few there were
	Calls     int       // Closed: judged in the Window since something bad happened; HalfOpen: probes
	Failures  int       // of these
	Slow      int       // of these
	Trips     uint64    // from Closed to Open, since the circuit is kept; Force is none and forgets them
	Probes    uint64    // sent
	Refused   uint64    // requests turned away; Forced: since Since
	Fallbacks uint64    // requests that Config.Fallback answered; Forced: since Since
	Waiting   int       // requests in line
}

// Stats returns what all circuits do. It takes time in proportion to the
// number of hosts kept.
func (c *Circuits) Stats() Stats {
	var s Stats
	forced := make(map[string]hold)
	c.mu.Lock()
	for host, h := range c.forced {
		forced[host] = *h
	}
	c.mu.Unlock()
	if home := c.home.Load(); home != nil {
		s.Kept = home.Len()
		home.Each(func(e *hosts.Entry) {
			if r := c.record(&e.Value); r != nil {
				for _, cir := range r.all() {
					if _, held := forced[r.host]; !held && cir.cfg == c.settings(r.host) {
						s.Circuits = append(s.Circuits, cir.stats())
					}
				}
			}
		})
	}
	for host, h := range forced {
		s.Circuits = append(s.Circuits, CircuitStats{Host: host, State: h.state, Forced: true, Reason: byHand(h.state), Since: h.since, Refused: h.refused, Fallbacks: h.fallbacks})
	}
	slices.SortFunc(s.Circuits, func(a, b CircuitStats) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Shard, b.Shard))
	})
	return s
}

func (c *circuit) stats() CircuitStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := CircuitStats{
		Host: c.host, Shard: c.shard, State: c.state, Reason: c.reason, Since: c.changed,
		Trips: c.trips, Probes: c.probes, Refused: c.refused, Fallbacks: c.fallbacks, Waiting: c.line.len(),
	}
	if c.state != Closed {
		s.NotBefore = c.latest
	}
	switch {
	case c.state == HalfOpen:
		s.Calls, s.Slow = c.good, c.slowGood
	case c.state == Closed && c.calls != nil:
		c.calls.State() // Counts alone does not move the window
		n := c.calls.Counts()
		s.Calls, s.Failures = int(n.TotalSuccesses+n.TotalFailures), int(n.TotalFailures)
		if c.slow != nil {
			c.slow.State()
			s.Slow = int(c.slow.Counts().TotalFailures)
		}
	}
	return s
}
