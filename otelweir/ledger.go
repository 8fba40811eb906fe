package otelweir

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// ledger turns the counts of hosts, which fall away with a host that is
// forgotten and begin anew when it is met again, into sums that only grow.
type ledger struct {
	r      *Reporter
	mu     sync.Mutex
	counts map[source]float64 // as they are in Stats
	totals map[source]*total  // by what they are called
}

// source is where a count comes from, or what it is called.
type source struct {
	instrument              int // of Reporter.counters, then of Reporter.times
	host, part, route, kind string
	since                   int64 // of a circuit that is forced: when that began; not part of a name
}

type total struct {
	n   float64
	set attribute.Set
}

// observe reports what was counted since the program began.
func (l *ledger) observe(s weir.Stats, o metric.Observer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read(s)
	for as, t := range l.totals {
		if as.instrument < counted {
			o.ObserveInt64(l.r.counters[as.instrument], int64(t.n), metric.WithAttributeSet(t.set))
		} else {
			o.ObserveFloat64(l.r.times[as.instrument-counted], t.n, metric.WithAttributeSet(t.set))
		}
	}
}

// read adds up what is new.
func (l *ledger) read(s weir.Stats) {
	before := l.counts
	l.counts = make(map[source]float64, len(before))
	for i := range s.Throttle.Hosts {
		l.host(&s.Throttle.Hosts[i])
	}
	for _, c := range s.Breaker.Circuits {
		at := source{instrument: circuitTrips, host: c.Host, part: c.Shard}
		l.add(at, float64(c.Trips))
		if at.instrument = circuitRefusals; c.Forced {
			at.since = c.Since.UnixNano()
		}
		l.add(at, float64(c.Refused))
		at.instrument = circuitFallbacks
		l.add(at, float64(c.Fallbacks))
	}
	for at, n := range l.counts {
		switch was := before[at]; {
		case n >= was:
			l.total(at).n += n - was
		case n < was/2:
			l.total(at).n += n // it was forgotten, and met again
		default:
			l.counts[at] = was // a grant or two went back
		}
	}
}

// host takes in the counts of a host or partition.
func (l *ledger) host(h *throttle.HostStats) {
	byHand := h.Pauses
	for i := range h.Routes {
		x := &h.Routes[i]
		l.route(source{host: h.Host, part: h.Partition, route: x.Route}, &x.Counts)
		byHand -= x.Pauses
	}
	l.add(source{instrument: pauses, host: h.Host, part: h.Partition}, float64(byHand))
}

// route takes in the counts of one route.
func (l *ledger) route(at source, c *throttle.Counts) {
	add := func(instrument int, kind string, n float64) {
		at.instrument, at.kind = instrument, kind
		l.add(at, n)
	}
	add(sent, "", float64(c.Granted))
	add(waits, "", float64(c.Waited))
	add(cancelled, "", float64(c.Cancelled))
	add(throttled, "", float64(c.Throttled))
	add(pauses, "", float64(c.Pauses))
	add(answers, "", float64(c.Latency.Count))
	add(counted+answerTime, "", c.Latency.Sum.Seconds())
	add(counted+waitTime, "", c.Wait.Sum.Seconds())
	for reason, n := range c.RefusedBy {
		add(refusals, reason, float64(n))
	}
	for after, n := range c.Retries {
		add(retries, after, float64(n))
	}
}

// add takes in n; several hosts may be one source.
func (l *ledger) add(at source, n float64) {
	if n > 0 {
		l.counts[at] += n
	}
}

// total is where the counts of a source are added up: under its own name if it
// has one.
func (l *ledger) total(at source) *total {
	host := l.r.host(at.host)
	as := source{
		instrument: at.instrument, host: host.name, kind: at.kind,
		part: l.r.partition(at.host, at.part), route: l.r.route(at.host, at.route),
	}
	t := l.totals[as]
	if t == nil {
		all := host.set.ToSlice()
		for _, x := range [...]struct{ name, value string }{
			{"weir.partition", as.part}, {"weir.route", as.route}, {kindOf(as.instrument), as.kind},
		} {
			if x.value != "" {
				all = append(all, attribute.String(x.name, x.value))
			}
		}
		t = &total{set: attribute.NewSet(all...)}
		l.totals[as] = t
	}
	return t
}

// kindOf is what the kinds of an instrument are.
func kindOf(instrument int) string {
	if instrument == refusals {
		return "weir.reason"
	}
	return "weir.after"
}
