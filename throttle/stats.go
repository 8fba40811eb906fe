package throttle

import (
	"slices"
	"strings"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
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

	State        State // StateRefusing, StatePaused, StateWaiting or StateOK: the first that is true of it or of one of its routes
	Budgets      []BudgetStats
	Restrictions []Restriction // what is not free now
	Queue        int           // requests that wait
	OldestWait   time.Duration // of those
	InFlight     int           // requests sent whose headers have not come
	Counts                     // of all its routes

	Learned []LearnedLimit // what the host stated or showed about its limits
	Routes  []RouteStats   // what its requests were for, by name; nil: there was none
}

// State is what a host or a route does with requests, in words.
type State string

// The states there are.
const (
	StateOK      State = "ok"
	StateWaiting State = "waiting" // requests wait
	StatePaused  State = "paused"  // nothing is let through for a while

	// StateRefusing says that, of the requests that were let through or turned
	// away in the last 10 to 20 s and those that wait now, at least half were
	// turned away: by a budget, a pause, the queue's end, or because their
	// deadline passed while they waited. An open circuit turns requests away
	// before they come here: weir.Transport.Stats says StateRefusing of its host.
	StateRefusing State = "refusing"
)

// Counts are numbers since a host was first met.
type Counts struct {
	Granted, Waited, Refused, Cancelled, Refunded int64 // attempts: what a package retry above sends again is counted again

	RefusedBy map[string]int64 // Refused by Reason in words, as "queue full"; nil: none
	Retries   map[string]int64 // attempts that were sent because of one before, by its retry.Outcome in words; nil: none
	Throttled int64            // answers by which the host asked for fewer requests
	Pauses    int64            // begun: of a host, by its word, by guess or by hand; of a route, by the answers to its requests. One that is prolonged is one
	Wait      Histogram        // waits for budget that are over, however they ended
	Latency   Histogram        // from handing a request to the base until its headers, of all that were answered
}

// BudgetStats is one limit of a budget.
type BudgetStats struct {
	Pattern string        // the pattern it stands under; "": Default
	Text    string        // the limit in words: "100000/h"
	Unit    string        // "": requests in flight
	Limit   int64         // a window's Limit, a Bucket, or the requests at a time
	Unspent float64       // of Limit; 4000 of 5000/h
	Left    float64       // of Unspent, that could be spent now: no more than Burst
	FullIn  time.Duration // until everything is there again; the largest Duration: when requests end
}

// Restriction is something that holds requests up now.
type Restriction struct {
	Unit    string
	Why     string        // in words: "100/h is spent"
	For     time.Duration // how much longer, for one request; zero: not known
	Learned bool          // it is one of HostStats.Learned, told with the host's name before it
	Route   string        // the pattern whose requests alone it holds up; "": not of one only, or it was learned: see LearnedLimit.Route
}

// Stats returns a copy of the Transport's state. It looks at one host at a time
// and holds nobody up for longer.
func (t *Transport) Stats() Stats { return t.StatsOf(nil) }

// StatsOf is Stats of the hosts and partitions for which want returns true, and of
// the record that hosts share for which there was no room. It is for those who
// look at many hosts often: stamp changes when a request is made, ends, waits or
// is refused, with a pause by hand, and with new budgets when the next request
// meets them. As long as it is the same only what time brings can have changed:
// what is left of budgets, or the end of a pause. want is called under no lock;
// nil: all are wanted.
func (t *Transport) StatsOf(want func(host, partition string, stamp uint64) bool) Stats {
	s := survey{want: want, parts: t.parts.Len(), paused: make(map[string]*queue.Account)}
	if want == nil {
		s.stats.Hosts = make([]HostStats, 0, t.hosts.Len()+s.parts)
	}
	t.hosts.Each(s.host)
	t.parts.Each(s.part)
	return s.stats
}

// A survey is one call of StatsOf. Hosts come before their partitions.
type survey struct {
	want   func(host, partition string, stamp uint64) bool // nil: all are wanted
	parts  int                                             // how many partitions there are
	paused map[string]*queue.Account                       // copies of the gates of hosts paused by hand, whose partitions rest too; none if there are no partitions
	stats  Stats
}

func (s *survey) host(entry *hosts.Entry) {
	if !entry.Value.Has(hosts.Throttle) {
		return
	}
	calm := false // nothing has happened since n changed
	if s.want != nil && s.parts == 0 && !entry.Overflow {
		n, held := entry.Uses()
		if calm = !held; calm && !s.want(entry.Key, "", uint64(n)) {
			return
		}
	}
	switch r := entry.Value.Occupant(hosts.Throttle).(*record); {
	case entry.Overflow:
		s.stats.Hosts = r.overflows(s.stats.Hosts)
	case calm || s.wants(r, entry.Key, ""):
		s.add(r, entry.Key, "")
	}
}

func (s *survey) part(entry *table.Entry[record]) {
	switch r := &entry.Value; {
	case !r.made():
	case entry.Overflow:
		s.stats.Hosts = r.overflows(s.stats.Hosts)
	default:
		if part := strings.TrimPrefix(r.key, r.host+"#"); s.wants(r, r.host, part) {
			s.add(r, r.host, part)
		}
	}
}

// wants asks whether r is wanted.
func (s *survey) wants(r *record, host, partition string) bool {
	if s.want == nil {
		return true
	}
	e := r.lock()
	stamp := r.stamp()
	s.gate(e, r, partition)
	e.Unlock()
	return s.want(host, partition, stamp)
}

func (s *survey) add(r *record, host, partition string) {
	e, _, _ := r.current()
	who, e := r.census(e)
	defer e.Unlock()
	now := e.Now()
	if s.want == nil { // else it is known
		s.gate(e, r, partition)
	}
	h := r.stats(now, s.paused[host], who)
	h.Partition = partition
	s.stats.Hosts = append(s.stats.Hosts, h)
}

// gate notes whether r, if it is a host, is paused by hand. The lock is held.
func (s *survey) gate(e *queue.Domain, r *record, partition string) {
	if s.parts > 0 && partition == "" && r.Gate.Paused > e.Now() {
		gate := r.Gate
		s.paused[r.host] = &gate
	}
}

// stamp differs when something has happened to r. The lock is held.
func (r *record) stamp() uint64 {
	stamp := uint64(r.version)
	mix := func(n int64) { stamp = (stamp ^ uint64(n)) * 0x9e3779b97f4a7c15; stamp ^= stamp >> 29 }
	mix(int64(r.Gate.Paused))
	mix(r.counters.granted)
	mix(int64(r.entered))
	mix(int64(r.Waiting))
	if c := r.counters.rest; c != nil {
		mix(c.waited)
		mix(c.refused + c.throttled<<20)
		mix(c.cancelled + c.refunded<<20)
		mix(c.paused + c.byHand<<20)
	}
	return stamp
}

// overflows appends what hosts share for which there was no room.
func (r *record) overflows(list []HostStats) []HostStats {
	for _, o := range r.others() {
		e, _, _ := o.current()
		who, e := o.census(e)
		h := o.stats(e.Now(), nil, who)
		e.Unlock()
		h.Host, h.Overflow = "others", true
		list = append(list, h)
	}
	return list
}

// stats describes r, which is current. home is a copy of its host's gate if r is of
// a partition and the host is paused by hand; nil: it is not. who waits is counted
// already. The lock is held.
func (r *record) stats(now instant, home *queue.Account, who census) HostStats {
	h := HostStats{Host: r.host, State: StateOK, Queue: int(r.Waiting), InFlight: int(r.entered - r.Waiting)}
	var holding []holding
	h.Learned, holding = r.learnedLimits(now)
	gate := &r.Gate
	if home != nil && home.Paused > gate.Paused {
		gate = home
	}
	r.budgets(now, &h, gate, holding)
	for _, l := range h.Learned {
		unit := l.Unit
		if l.Kind != LearnedQuota {
			unit = "" // of all others
		}
		h.Restrictions = append(h.Restrictions, Restriction{Unit: unit, Why: r.key + ": " + l.Why, For: l.Wait, Learned: true})
	}
	r.routeStats(now, &h, gate, holding, who)
	return h
}

// budgets adds what was configured: pauses by hand and the limits of budgets.
// One that only rests until a pause ends is not told as one that is spent.
func (s *scope) budgets(now instant, h *HostStats, gate *queue.Account, learned []holding) {
	rests := func(at instant) bool {
		return at <= gate.Paused || slices.ContainsFunc(learned, func(l holding) bool {
			return l.what == causeCooldown && l.limit.Wait == at.Until(now)
		})
	}
	if gate.Paused > now {
		h.State = StatePaused
		h.Restrictions = append(h.Restrictions, Restriction{Why: gate.Why(), For: gate.Paused.Until(now)})
	}
	if len(s.own) > 0 {
		h.Budgets = make([]BudgetStats, 0, len(s.own))
	}
	for _, m := range s.own {
		v := m.a.Meter.State(now)
		t := m.a.Label
		h.Budgets = append(h.Budgets, BudgetStats{
			Pattern: t.Pattern, Text: t.Text, Unit: t.Unit,
			Limit: v.Limit, Unspent: v.Unspent, Left: v.Left, FullIn: v.Full.Until(now),
		})
		at := m.a.At(now, 1)
		if at <= now && !m.a.Waited() || at > now && rests(at) {
			continue
		}
		x := Restriction{Unit: t.Unit, Why: m.a.Reason(now)}
		if m.a.Group != nil { // a pool's has no route: it holds up others, too
			x.Route = t.Route
		}
		if at != never {
			x.For = at.Until(now)
		}
		h.Restrictions = append(h.Restrictions, x)
	}
}
