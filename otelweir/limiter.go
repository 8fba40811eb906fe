package otelweir

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirhttp/weir/throttle"
)

// limiter reports a throttle.Limiter.
type limiter struct {
	l        *throttle.Limiter
	name     attribute.KeyValue
	queue    metric.Int64ObservableGauge
	refusing metric.Int64ObservableGauge
	oldest   metric.Float64ObservableGauge
	granted  metric.Int64ObservableCounter
	waited   metric.Int64ObservableCounter
	refused  metric.Int64ObservableCounter
	overflow metric.Int64ObservableCounter

	mu                                    sync.Mutex
	grantedSums, waitedSums, refusedByWhy growing
}

// ObserveLimiter reports a Limiter under a name whenever metrics are collected,
// until stop is called. Its keys, which may be as many as there are users, are
// added up and not named.
func (r *Reporter) ObserveLimiter(name string, l *throttle.Limiter) (stop func() error, err error) {
	m := &build{Meter: r.meter}
	b := &limiter{
		l: l, name: attribute.String("weir.limiter", name),
		queue:    m.gauge("weir.limiter.queue.length", "{call}", "Calls that wait for room."),
		refusing: m.gauge("weir.limiter.refusing", "{key}", "Keys most of whose latest calls are turned away."),
		oldest:   m.level("weir.limiter.queue.oldest", "s", "How long the oldest of the waiting calls has waited."),
		granted:  m.seen("weir.limiter.granted", "{call}", "Calls let through."),
		waited:   m.seen("weir.limiter.waits", "{call}", "Calls that had to wait."),
		refused:  m.seen("weir.limiter.refusals", "{call}", "Calls turned away, by reason."),
		overflow: m.seen("weir.limiter.overflow", "{call}", "Calls of keys for which there was no room."),
	}
	if m.err != nil {
		return nil, fmt.Errorf("otelweir: %w", m.err)
	}
	reg, err := r.meter.RegisterCallback(b.observe, b.queue, b.refusing, b.oldest, b.granted, b.waited, b.refused, b.overflow)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

func (b *limiter) observe(_ context.Context, o metric.Observer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.l.Stats()
	var queue, refusing int64
	var oldest float64
	granted, waited, refused := make(map[string]uint64), make(map[string]uint64), make(map[string]uint64)
	for i := range s.Keys {
		k := &s.Keys[i]
		queue += int64(k.Queue)
		oldest = max(oldest, k.OldestWait.Seconds())
		if k.State == throttle.StateRefusing {
			refusing++
		}
		key := k.Host
		if k.Overflow {
			key = "\x00" // those that share an account are added up
		}
		granted[key] += uint64(max(0, k.Granted))
		waited[key] += uint64(k.Waited)
		for why, n := range k.RefusedBy {
			refused[why+"\x00"+key] += uint64(n)
		}
	}
	with := metric.WithAttributes(b.name)
	o.ObserveInt64(b.queue, queue, with)
	o.ObserveInt64(b.refusing, refusing, with)
	o.ObserveFloat64(b.oldest, oldest, with)
	o.ObserveInt64(b.overflow, s.Overflow, with)
	one := func(string) string { return "" }
	for _, n := range b.grantedSums.add(granted, one) {
		o.ObserveInt64(b.granted, int64(n), with)
	}
	for _, n := range b.waitedSums.add(waited, one) {
		o.ObserveInt64(b.waited, int64(n), with)
	}
	reason := func(of string) string { why, _, _ := strings.Cut(of, "\x00"); return why }
	for why, n := range b.refusedByWhy.add(refused, reason) {
		o.ObserveInt64(b.refused, int64(n), metric.WithAttributes(b.name, attribute.String("weir.reason", why)))
	}
	return nil
}
