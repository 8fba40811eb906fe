package throttle

import (
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
)

// Stats is a copy of what a Transport knows, host by host.
type Stats struct {
	Hosts []HostStats
}

// HostStats is one host, or one partition of it.
type HostStats struct {
	Host      string
	Partition string // eight hex digits; "": the host itself
	Overflow  bool   // shared by all for which there was no room

	Budgets      []BudgetStats
	Restrictions []Restriction // what is not free now
	Queue        int           // requests that wait
	OldestWait   time.Duration // of those
	InFlight     int           // requests sent whose headers have not come

	// Since the host was first met.
	Granted, Waited, Refused, Cancelled, Refunded int64            // requests
	RefusedBy                                     map[string]int64 // Refused by Reason in words, as "queue full"; nil: none
	Throttled                                     int64            // answers by which the host asked for fewer requests
	Pauses                                        int64            // begun, by the host's word, by guess or by hand; one that is prolonged is one
	Wait                                          Histogram        // waits for budget that are over, however they ended
	Latency                                       Histogram        // from handing a request to the base until its headers, of all that were answered

	Learned []LearnedLimit // what the host stated or showed about its limits
}

// BudgetStats is one limit of a budget.
type BudgetStats struct {
	Pattern string // the pattern it stands under; "": Default
	Text    string // the limit in words: "100000/h"
	Unit    string // "": requests in flight
	Limit   int64
	Left    float64       // that could be spent now
	FullIn  time.Duration // until everything is there again; the largest Duration: when requests end
}

// Restriction is something that holds requests up now.
type Restriction struct {
	Unit    string
	Why     string        // in words: "100/h is spent"
	For     time.Duration // how much longer, for one request; zero: not known
	Learned bool          // it is one of HostStats.Learned, told with the host's name before it
}

// Stats returns a copy of the Transport's state. It looks at one host at a time
// and holds nobody up for longer.
func (t *Transport) Stats() Stats {
	s := Stats{Hosts: make([]HostStats, 0, t.hosts.Len()+t.parts.Len())}
	e := t.engine
	t.hosts.All(func(entry *hosts.Entry) {
		o := entry.Value.Occupant(hosts.Throttle)
		if o == nil {
			return
		}
		r := o.(*record)
		e.mu.Lock()
		defer e.mu.Unlock()
		now := e.now()
		if !entry.Overflow {
			s.Hosts = append(s.Hosts, r.stats(now))
		}
		s.Hosts = append(s.Hosts, r.others(now)...)
	})
	t.parts.All(func(entry *table.Entry[record]) {
		e.mu.Lock()
		defer e.mu.Unlock()
		r := &entry.Value
		if r.t == nil {
			return
		}
		if !entry.Overflow {
			h := r.stats(e.now())
			h.Partition = t.shown(r.part)
			s.Hosts = append(s.Hosts, h)
		}
		s.Hosts = append(s.Hosts, r.others(e.now())...)
	})
	return s
}

// others describes what hosts share for which there was no room.
func (r *record) others(now instant) (list []HostStats) {
	for _, o := range r.over {
		h := o.stats(now)
		h.Host, h.Overflow = "others", true
		list = append(list, h)
	}
	return list
}

// stats describes r. The engine's lock is held.
func (r *record) stats(now instant) HostStats {
	r.renew(now)
	c := &r.counters
	h := HostStats{
		Host: r.host, Queue: r.waiting, InFlight: r.entered - r.waiting,
		Granted: c.granted, Latency: c.latency.histogram(), Learned: r.learnedLimits(now),
	}
	if x := c.rest; x != nil {
		h.Waited, h.Refused, h.Cancelled, h.Refunded = x.waited, x.refused, x.cancelled, x.refunded
		h.Throttled, h.Pauses, h.Wait = x.throttled, x.pauses, x.waits.histogram()
		if x.refused > 0 {
			h.RefusedBy = x.byReason()
		}
	}
	for w := r.waiters; w != nil; w = w.next {
		h.OldestWait = max(h.OldestWait, time.Duration(now-w.since))
	}
	if r.gate.paused > now {
		h.Restrictions = append(h.Restrictions, Restriction{Why: r.gate.why, For: r.gate.paused.until(now)})
	}
	for _, m := range r.own {
		v := m.a.meter.view(now)
		t := m.a.terms
		h.Budgets = append(h.Budgets, BudgetStats{
			Pattern: t.pattern, Text: t.text, Unit: t.unit,
			Limit: v.limit, Left: v.left, FullIn: v.full.until(now),
		})
		at := m.a.at(now, 1)
		if at <= now && m.a.line == nil {
			continue
		}
		x := Restriction{Unit: t.unit, Why: m.a.reason(now)}
		if at != never {
			x.For = at.until(now)
		}
		h.Restrictions = append(h.Restrictions, x)
	}
	for _, l := range h.Learned {
		unit := l.Unit
		if l.Kind != LearnedQuota {
			unit = "" // of all others
		}
		h.Restrictions = append(h.Restrictions, Restriction{Unit: unit, Why: r.key + ": " + l.Why, For: l.Wait, Learned: true})
	}
	return h
}
