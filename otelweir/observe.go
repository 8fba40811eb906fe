package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/throttle"
)

// maxBudgets bounds the budgets of one host that are reported, and the sources
// and units of limits that its server states, over time.
const maxBudgets = 10

// Observe reports t's counts, budgets, queues and circuits whenever metrics
// are collected, until stop is called.
func (r *Reporter) Observe(t *weir.Transport) (stop func() error, err error) {
	l := &ledger{r: r, totals: make(map[source]*total)}
	all := []metric.Observable{r.left, r.limitLeft, r.oldest, r.expected, r.allowance, r.queue, r.refusing, r.state, r.forced, r.active}
	for _, c := range r.counters {
		all = append(all, c)
	}
	for _, c := range r.times {
		all = append(all, c)
	}
	reg, err := r.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := t.Stats()
		r.observe(s, o)
		l.observe(s, o)
		return nil
	}, all...)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

// observe reports what is so at the moment.
func (r *Reporter) observe(s weir.Stats, o metric.Observer) {
	sums := make(map[attribute.Set]*now)
	at := func(host string) *now {
		set := r.host(host).set
		if sums[set] == nil {
			sums[set] = new(now)
		}
		return sums[set]
	}
	for i := range s.Throttle.Hosts {
		h := &s.Throttle.Hosts[i]
		n := at(h.Host)
		n.queue += int64(h.Queue)
		n.active += int64(h.InFlight)
		if h.State == throttle.StateRefusing {
			n.refusing = 1
		}
		n.oldest = max(n.oldest, h.OldestWait.Seconds())
		if h.Partition == "" && len(h.Routes) > 0 && !h.Overflow && r.host(h.Host).name != other {
			r.limits(h, o) // of many that share a name a sum of what is left says nothing; nor does what none draws on
		}
	}
	for _, h := range s.Retry.Hosts {
		host := h.Host
		if h.Allowance >= 0 && host != "*" && r.host(host).name != other {
			o.ObserveFloat64(r.allowance, h.Allowance, r.with(host))
		}
	}
	for _, c := range s.Breaker.Circuits {
		n := at(c.Host)
		n.state = max(n.state, number(c.State))
		if c.State == breaker.Open {
			n.refusing = 1 // also if nothing came to the throttle yet
		}
		if c.Forced {
			n.forced = 1
		}
	}
	for set, n := range sums {
		with := metric.WithAttributeSet(set)
		o.ObserveInt64(r.queue, n.queue, with)
		o.ObserveInt64(r.refusing, n.refusing, with)
		o.ObserveInt64(r.active, n.active, with)
		o.ObserveFloat64(r.oldest, n.oldest, with)
		o.ObserveInt64(r.state, n.state, with)
		o.ObserveInt64(r.forced, n.forced, with)
	}
}

// now is what all hosts of one name do at the moment.
type now struct {
	queue, refusing, active, state, forced int64
	oldest                                 float64
}

// limits reports what is left of a host's limits, and what its routes would wait.
func (r *Reporter) limits(h *throttle.HostStats, o metric.Observer) {
	for _, b := range h.Budgets[:min(len(h.Budgets), maxBudgets)] {
		o.ObserveFloat64(r.left, b.Left, r.with(h.Host,
			attribute.String("weir.budget", b.Text), attribute.String("weir.unit", b.Unit), attribute.String("weir.pattern", b.Pattern)))
	}
	left := make(map[[3]string]float64) // the least of those that are called the same
	for _, l := range h.Learned {
		if !r.part(h.Host, 'l', l.Source+" "+l.Unit, maxBudgets) {
			continue // servers can make up as many as they like
		}
		key := [3]string{l.Source, l.Unit, r.route(h.Host, l.Route)}
		if old, ok := left[key]; l.Left >= 0 && (ok || len(left) < maxBudgets) && (!ok || l.Left < old) {
			left[key] = l.Left
		}
	}
	for key, n := range left {
		o.ObserveFloat64(r.limitLeft, n, r.with(h.Host,
			attribute.String("weir.source", key[0]), attribute.String("weir.unit", key[1]), attribute.String("weir.route", key[2])))
	}
	expected := make(map[string]float64)
	for i := range h.Routes {
		x := &h.Routes[i]
		route := r.route(h.Host, x.Route)
		expected[route] = max(expected[route], x.For.Seconds())
	}
	for route, d := range expected {
		o.ObserveFloat64(r.expected, d, r.with(h.Host, attribute.String("weir.route", route)))
	}
}

func number(s breaker.State) int64 {
	switch s {
	case breaker.HalfOpen:
		return 1
	case breaker.Open:
		return 2
	}
	return 0
}
