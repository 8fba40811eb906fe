package retry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Stats is a plain copy of what a Transport has counted.
type Stats struct {
	Requests  int64            // of which an attempt was made
	Attempts  int64            // all that were made, hedges included
	Retries   map[string]int64 // attempts after the first, by the Outcome they followed; nil: none
	Hedges    int64            // sent
	HedgesWon int64            // whose answer was used
	Hosts     []HostStats      // in no order; those evicted are missing
}

// HostStats is the part of one host, its fields as in [Stats]. A host that is
// forgotten and met again begins anew.
type HostStats struct {
	Host      string // canonical; "*": those that share a record, as there was no room
	Requests  int64
	Attempts  int64
	Retries   map[string]int64
	Hedges    int64
	HedgesWon int64
	Allowance float64 // tokens left for retries and hedges; -1: not limited
}

// counts is what few requests add to.
type counts struct {
	retries     [outcomes]atomic.Int64
	hedges, won atomic.Int64
}

// past is the attempts at hosts that may be forgotten. What a host counts is its
// own, so that calls to different hosts write nothing in common: all are summed
// up when somebody asks.
type past struct {
	mu sync.Mutex
	n  int64
}

// keep adds what h has counted since it was last called.
func (p *past) keep(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := h.attempts.Load()
	p.n, h.kept = p.n+n-h.kept, n
}

// sum is past attempts and those of hosts that are known.
func (p *past) sum(known []*host) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	for _, h := range known {
		n += h.attempts.Load() - h.kept
	}
	return n
}

func (c *counts) byOutcome() map[string]int64 {
	var m map[string]int64
	for o := range c.retries {
		if n := c.retries[o].Load(); n > 0 {
			if m == nil {
				m = make(map[string]int64)
			}
			m[Outcome(o).String()] = n
		}
	}
	return m
}

// first is how many of attempts were a request's first.
func first(attempts, hedges int64, retries map[string]int64) int64 {
	for _, n := range retries {
		attempts -= n
	}
	return max(0, attempts-hedges) // the counts are read one after the other
}

// Stats returns what was counted so far. It is safe to call at any time.
func (t *Transport) Stats() Stats {
	s := Stats{
		Retries: t.count.byOutcome(),
		Hedges:  t.count.hedges.Load(), HedgesWon: t.count.won.Load(),
		Hosts: make([]HostStats, 0, t.link.Hosts.Len()),
	}
	var known []*host
	now := time.Now()
	t.link.Hosts.All(func(e *hosts.Entry) {
		if h, ok := e.Value.Occupant(hosts.Retry).(*host); ok {
			known = append(known, h)
			s.Hosts = append(s.Hosts, t.hostStats(e, h, now))
		}
	})
	s.Attempts = t.past.sum(known)
	s.Requests = first(s.Attempts, s.Hedges, s.Retries)
	return s
}

// StatsOf is the part of one host, by its canonical name; false: nothing is known
// of it. It is for those who look at few of many hosts.
func (t *Transport) StatsOf(name string) (s HostStats, ok bool) {
	var e *hosts.Entry
	if name == "*" {
		e = t.link.Hosts.Overflow()
	} else if e = t.link.Hosts.Find(name); e == nil {
		return s, false
	} else {
		defer e.Release()
	}
	h, ok := e.Value.Occupant(hosts.Retry).(*host)
	if ok {
		s = t.hostStats(e, h, time.Now())
	}
	return s, ok
}

// hostStats is what was counted of h, the host of e.
func (t *Transport) hostStats(e *hosts.Entry, h *host, now time.Time) HostStats {
	hs := HostStats{
		Host: e.Key, Attempts: h.attempts.Load(), Retries: h.count.byOutcome(),
		Hedges: h.count.hedges.Load(), HedgesWon: h.count.won.Load(), Allowance: -1,
	}
	hs.Requests = first(hs.Attempts, hs.Hedges, hs.Retries)
	c := t.c
	if set := t.perHost.Load(); set != nil {
		if r := set.Host(e.Key); r.Found {
			c = r.Value
		}
	}
	if !c.Allowance.Disable {
		hs.Allowance = h.allowance.left(c.Allowance.Tokens, now)
	}
	if e.Overflow {
		hs.Host = "*"
	}
	return hs
}
