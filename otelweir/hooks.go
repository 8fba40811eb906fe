package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// maxBudgets bounds the budgets of one host that are reported.
const maxBudgets = 10

func (r *Reporter) onWait(w throttle.Wait) {
	if !w.Over {
		r.event(w.Ctx, "weir.wait", attribute.String("weir.why", w.Why), attribute.Float64("weir.expect", w.Expect.Seconds()), attribute.Int("weir.ahead", w.Ahead))
		return
	}
	r.wait.Record(background(w.Ctx), w.Waited.Seconds(), r.with(w.Key, attribute.Bool("weir.granted", w.Granted)))
}

func (r *Reporter) onLearn(l throttle.Learned) {
	r.learned.Add(background(l.Ctx), 1, r.with(l.Key))
	r.event(l.Ctx, "weir.learned", attribute.String("weir.why", l.Why))
}

func (r *Reporter) onAttempt(a retry.Attempt) {
	ctx := background(a.Ctx)
	attributes := []attribute.KeyValue{
		attribute.String("weir.outcome", a.Outcome.String()),
		attribute.String("weir.then", a.Reason.String()),
	}
	if a.Status != 0 {
		attributes = append(attributes, attribute.Int("http.response.status_code", a.Status))
	}
	r.attempts.Add(ctx, 1, r.with(a.Host, attributes...))
	if a.Number > 1 {
		r.resends.Add(ctx, 1, r.with(a.Host, attributes[0]))
	}
	if a.Number > 1 || a.Reason != retry.Final {
		r.event(a.Ctx, "weir.attempt", append(attributes,
			attribute.Int("http.request.resend_count", a.Number-1), attribute.Float64("weir.delay", a.Delay.Seconds()))...)
	}
}

func (r *Reporter) onChange(c breaker.Change) {
	state := attribute.String("weir.circuit.state", c.To.String())
	r.changes.Add(background(c.Ctx), 1, r.with(c.Host, state))
	r.event(c.Ctx, "weir.circuit", state, attribute.String("weir.why", c.Reason))
}

func background(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// Observe reports t's budgets, queues and circuits whenever metrics are
// collected, until stop is called.
func (r *Reporter) Observe(t *weir.Transport) (stop func() error, err error) {
	reg, err := r.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r.observe(t.Stats(), o)
		return nil
	}, r.left, r.queue, r.state)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

// observe adds up what falls together under one name.
func (r *Reporter) observe(s weir.Stats, o metric.Observer) {
	queues := make(map[attribute.Set]int64)
	states := make(map[attribute.Set]int64)
	for i := range s.Throttle.Hosts {
		h := &s.Throttle.Hosts[i]
		host := r.host(h.Host)
		queues[host] += int64(h.Queue)
		states[host] += 0
		if h.Partition != "" || host == r.host(other) {
			continue // many share the name: a sum of what is left says nothing
		}
		for _, b := range h.Budgets[:min(len(h.Budgets), maxBudgets)] {
			o.ObserveFloat64(r.left, b.Left, r.with(h.Host,
				attribute.String("weir.budget", b.Text), attribute.String("weir.unit", b.Unit), attribute.String("weir.pattern", b.Pattern)))
		}
	}
	for _, c := range s.Breaker.Circuits {
		host := r.host(c.Host)
		states[host] = max(states[host], number(c.State))
	}
	for host, n := range queues {
		o.ObserveInt64(r.queue, n, metric.WithAttributeSet(host))
	}
	for host, n := range states {
		o.ObserveInt64(r.state, n, metric.WithAttributeSet(host))
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
