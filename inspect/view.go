package inspect

import (
	"slices"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// Snapshot is what GET /stats.json answers.
type Snapshot struct {
	At     time.Time `json:"at"`
	Bounds []float64 `json:"bounds"`           // seconds: the upper ends of the buckets of all Durations
	Hosts  []*Host   `json:"hosts"`            // by name, then partition
	Outbox []Kept    `json:"outbox,omitempty"` // its queues, the stuck ones first; see Config.Outbox
}

// Host is all that is known about one host, or one partition of it.
// Durations are in seconds. What is counted per host only (requests, attempts,
// hedges, circuit) stands at the host itself and at each of its partitions.
type Host struct {
	Name      string `json:"name"`
	Limiter   string `json:"limiter,omitempty"`   // whose key it is; "": it is a host; see Config.Limiters
	Partition string `json:"partition,omitempty"` // eight hex digits
	State     string `json:"state"`               // "ok", "waiting", "paused", "refusing", "half-open", "open"
	Why       []Hold `json:"why,omitempty"`       // what holds requests up, the longest first

	Queue      int     `json:"queue"`      // requests that wait, for budget or for the circuit
	OldestWait float64 `json:"oldestWait"` // of those that wait for budget
	InFlight   int     `json:"inFlight"`

	Counts
	Requests  int64   `json:"requests"` // that callers made, of which an attempt was sent
	Attempts  int64   `json:"attempts"`
	Hedges    int64   `json:"hedges"`
	Allowance float64 `json:"allowance"` // tokens left for retries; -1: not limited

	Budgets []Budget `json:"budgets,omitempty"` // configured
	Learned []Fact   `json:"learned,omitempty"` // what the host said or showed about its limits
	Circuit *Circuit `json:"circuit,omitempty"` // nil: nothing has happened
	Routes  []Route  `json:"routes,omitempty"`  // what its requests were for; in the rows of an event there are none
}

// Counts are numbers since a host was first met, of it or of one route.
type Counts struct {
	Granted   int64            `json:"granted"` // attempts let through
	Waited    int64            `json:"waited"`  // that had to wait
	Refused   int64            `json:"refused"` // turned away by a budget
	RefusedBy map[string]int64 `json:"refusedBy,omitempty"`
	Cancelled int64            `json:"cancelled"`         // gave up while they waited
	Refunded  int64            `json:"refunded"`          // granted, then not sent
	Retries   map[string]int64 `json:"retries,omitempty"` // sent because of an attempt before, by how that ended
	Throttled int64            `json:"throttled"`         // answers by which the host asked for fewer requests
	Pauses    int64            `json:"pauses"`            // begun
	Wait      Durations        `json:"wait"`              // waits for budget that are over
	Latency   Durations        `json:"latency"`           // from sending until the headers
}

// Route is one kind of request of a host: those that a budget's pattern matches,
// or those of one method and first segment of a path.
type Route struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`         // "ok", "waiting", "paused", "refusing", or the circuit's unless that is closed
	Why        *Hold   `json:"why,omitempty"` // what a request that came now would wait for
	Queue      int     `json:"queue"`
	OldestWait float64 `json:"oldestWait"`
	InFlight   int     `json:"inFlight"`
	Counts
}

// Durations says how long something took, in seconds. P50 and P95 are
// estimates from Counts.
type Durations struct {
	Count  int64   `json:"count"`
	Sum    float64 `json:"sum"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	Counts []int64 `json:"counts,omitempty"` // by Snapshot.Bounds, each without those before; the last: beyond all. Empty if Count is 0
}

// Hold is something that holds requests up.
type Hold struct {
	Text  string  `json:"text"`
	For   float64 `json:"for,omitempty"`   // how much longer; 0: not known
	Route string  `json:"route,omitempty"` // whose requests alone, if Text does not say so; "": not of one only
}

// Budget is one configured limit.
type Budget struct {
	Text    string  `json:"text"`
	Pattern string  `json:"pattern,omitempty"`
	Unit    string  `json:"unit,omitempty"` // "": requests in flight
	Limit   int64   `json:"limit"`
	Left    float64 `json:"left"`   // of Limit; how many may go at once is in Text
	FullIn  float64 `json:"fullIn"` // -1: when requests end
}

// Circuit is the state of a host's circuit.
type Circuit struct {
	State    string  `json:"state"`
	Forced   bool    `json:"forced,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	ProbeIn  float64 `json:"probeIn,omitempty"`
	Calls    int     `json:"calls"`
	Failures int     `json:"failures"`
	Trips    uint64  `json:"trips"`
	Refused  uint64  `json:"refused"`
	Fallback uint64  `json:"fallback"` // requests that the program answered itself instead
	Waiting  int     `json:"waiting"`
}

func byName(a, b *Host) int {
	return keyOf(a).compare(keyOf(b))
}

// hostsOf are the hosts of stats, in its order.
func hostsOf(stats *weir.Stats, circuits map[string]*breaker.CircuitStats, now time.Time) []*Host {
	retries := make(map[string]*retry.HostStats, len(stats.Retry.Hosts))
	for i := range stats.Retry.Hosts {
		retries[stats.Retry.Hosts[i].Host] = &stats.Retry.Hosts[i]
	}
	list := make([]*Host, len(stats.Throttle.Hosts))
	for i := range stats.Throttle.Hosts {
		from := &stats.Throttle.Hosts[i]
		h := hostOf(from)
		name := h.Name
		if from.Overflow && h.Partition == "" {
			name = "*" // what package retry calls those that share a record
		}
		if r := retries[name]; r != nil {
			h.Requests, h.Attempts, h.Hedges, h.Allowance = r.Requests, r.Attempts, r.Hedges, r.Allowance
		}
		if c := circuits[h.Name]; c != nil {
			h.circuit(c, now)
		}
		list[i] = h
	}
	return list
}

// unmet are the hosts whose circuits were forced before any request.
func unmet(circuits map[string]*breaker.CircuitStats, met func(name string) bool, now time.Time) (list []*Host) {
	for name, c := range circuits {
		if !met(name) {
			h := &Host{Name: name, State: ok, Allowance: -1}
			h.circuit(c, now)
			list = append(list, h)
		}
	}
	return list
}

// bounds are those of package throttle, in seconds.
func bounds() []float64 {
	list := throttle.HistogramBounds()
	in := make([]float64, len(list))
	for i, b := range list {
		in[i] = b.Seconds()
	}
	return in
}

func durations(h *throttle.Histogram) Durations {
	if h.Count == 0 {
		return Durations{}
	}
	return Durations{h.Count, h.Sum.Seconds(), h.Quantile(0.5).Seconds(), h.Quantile(0.95).Seconds(), h.Counts}
}

// worst returns the circuit of each host, of several shards the one in the
// worst state.
func worst(all []breaker.CircuitStats) map[string]*breaker.CircuitStats {
	by := make(map[string]*breaker.CircuitStats, len(all))
	for i := range all {
		c := &all[i]
		if old := by[c.Host]; old == nil || rank(c.State.String()) > rank(old.State.String()) {
			by[c.Host] = c
		}
	}
	return by
}

func (h *Host) circuit(c *breaker.CircuitStats, now time.Time) {
	v := &Circuit{
		State: c.State.String(), Forced: c.Forced, Reason: c.Reason,
		Calls: c.Calls, Failures: c.Failures, Trips: c.Trips, Refused: c.Refused, Fallback: c.Fallbacks, Waiting: c.Waiting,
	}
	if c.NotBefore.After(now) {
		v.ProbeIn = c.NotBefore.Sub(now).Seconds()
	}
	h.Circuit = v
	if h.Partition == "" {
		h.Queue += c.Waiting // they stand at the host's door, whatever their partition
	}
	if c.State != breaker.Closed {
		h.State = v.State
		text := "circuit " + v.State
		switch {
		case c.Forced:
			text = "circuit " + c.Reason
		case c.Reason != "":
			text += ": " + c.Reason
		}
		why := Hold{Text: text, For: v.ProbeIn}
		h.Why = slices.Insert(h.Why, 0, why)
		for i := range h.Routes {
			h.Routes[i].State, h.Routes[i].Why = v.State, &why
		}
	}
}
