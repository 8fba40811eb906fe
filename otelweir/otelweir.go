package otelweir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
)

// name is the instrumentation scope.
const name = "github.com/weirhttp/weir/otelweir"

// other stands for the hosts beyond MaxHosts.
const other = "_other"

// Config says where to report. The zero Config reports to the global
// providers.
type Config struct {
	MeterProvider metric.MeterProvider // nil: otel.GetMeterProvider()
	MaxHosts      int                  // hosts named in metrics; zero: 200
	NoEvents      bool                 // no events on spans
}

// Reporter is what New returns. It is safe for concurrent use.
type Reporter struct {
	meter    metric.Meter
	maxHosts int
	events   bool

	attempts, resends, learned, changes metric.Int64Counter
	wait                                metric.Float64Histogram
	left                                metric.Float64ObservableGauge
	queue, state                        metric.Int64ObservableGauge

	mu    sync.Mutex
	hosts map[string]attribute.Set
}

// New sets the hooks of w, each before the one that is set already, and
// returns what reports. It is to be called before weir.New.
func New(w *weir.Config, c Config) (*Reporter, error) {
	if w == nil {
		return nil, errors.New("otelweir: no weir.Config")
	}
	if c.MaxHosts < 0 {
		return nil, fmt.Errorf("otelweir: MaxHosts: %d is negative", c.MaxHosts)
	}
	if c.MaxHosts == 0 {
		c.MaxHosts = 200
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	r := &Reporter{
		meter: c.MeterProvider.Meter(name), maxHosts: c.MaxHosts, events: !c.NoEvents,
		hosts: make(map[string]attribute.Set),
	}
	if err := r.instruments(); err != nil {
		return nil, fmt.Errorf("otelweir: %w", err)
	}
	w.Throttle.OnWait = then(r.onWait, w.Throttle.OnWait)
	w.Throttle.OnLearn = then(r.onLearn, w.Throttle.OnLearn)
	r.hookRetry(&w.Retry)
	r.hookBreaker(&w.Breaker)
	for pattern, h := range w.Hosts { // settings of their own have hooks of their own
		if h.Retry != nil {
			own := *h.Retry
			r.hookRetry(&own)
			h.Retry = &own
		}
		if h.Breaker != nil {
			own := *h.Breaker
			r.hookBreaker(&own)
			h.Breaker = &own
		}
		w.Hosts[pattern] = h
	}
	return r, nil
}

func (r *Reporter) hookRetry(c *retry.Config) { c.OnAttempt = then(r.onAttempt, c.OnAttempt) }

func (r *Reporter) hookBreaker(c *breaker.Config) {
	c.OnStateChange = then(r.onChange, c.OnStateChange)
}

// then calls first and next.
func then[T any](first, next func(T)) func(T) {
	if next == nil {
		return first
	}
	return func(v T) {
		first(v)
		next(v)
	}
}

func (r *Reporter) instruments() (err error) {
	counter := func(name, unit, text string) metric.Int64Counter {
		i, e := r.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		err = errors.Join(err, e)
		return i
	}
	gauge := func(name, unit, text string) metric.Int64ObservableGauge {
		i, e := r.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
		err = errors.Join(err, e)
		return i
	}
	r.attempts = counter("weir.client.attempts", "{attempt}", "Attempts, by how they ended and what followed.")
	r.resends = counter("weir.client.resends", "{attempt}", "Attempts after a request's first.")
	r.learned = counter("weir.client.learned", "{event}", "Things learned about a server's limits.")
	r.changes = counter("weir.client.circuit.changes", "{change}", "Changes of circuits, by their new state.")
	r.queue = gauge("weir.client.queue.length", "{request}", "Requests that wait for budget.")
	r.state = gauge("weir.client.circuit.state", "1", "State of the host's circuit: 0 closed, 1 half-open, 2 open.")
	var e error
	r.wait, e = r.meter.Float64Histogram("weir.client.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Waits for budget."),
		metric.WithExplicitBucketBoundaries(0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60))
	err = errors.Join(err, e)
	r.left, e = r.meter.Float64ObservableGauge("weir.client.budget.left", metric.WithUnit("{unit}"),
		metric.WithDescription("Units that could be spent now."))
	return errors.Join(err, e)
}

// host returns the attributes that name a host, or those of all others.
func (r *Reporter) host(host string) attribute.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set, ok := r.hosts[host]; ok {
		return set
	}
	if len(r.hosts) >= r.maxHosts {
		host = other
		if set, ok := r.hosts[other]; ok {
			return set
		}
	}
	set := address(host)
	r.hosts[host] = set
	return set
}

// address names a host by the conventions: its port stands apart.
func address(host string) attribute.Set {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			return attribute.NewSet(attribute.String("server.address", name), attribute.Int("server.port", n))
		}
	}
	return attribute.NewSet(attribute.String("server.address", host))
}

// with adds attributes to those of a host.
func (r *Reporter) with(host string, more ...attribute.KeyValue) metric.MeasurementOption {
	set := r.host(host)
	return metric.WithAttributes(append(set.ToSlice(), more...)...)
}

// event writes on the caller's span.
func (r *Reporter) event(ctx context.Context, name string, attributes ...attribute.KeyValue) {
	if !r.events || ctx == nil {
		return
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(name, trace.WithAttributes(attributes...))
	}
}
