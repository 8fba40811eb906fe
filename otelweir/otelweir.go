package otelweir

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	MaxRoutes     int                  // routes named of each; zero: 20; negative: none
	MaxPartitions int                  // partitions told apart of each; zero: none, they are added up. Their names are new with each start of the program
	NoEvents      bool                 // no events on spans
}

// Reporter is what New returns. It is safe for concurrent use.
type Reporter struct {
	meter  metric.Meter
	c      Config
	events bool

	attempts, resends, learned, changes metric.Int64Counter
	wait, duration                      metric.Float64Histogram
	gauges
	counters [counted]metric.Int64ObservableCounter
	times    [timed]metric.Float64ObservableCounter

	mu    sync.Mutex
	hosts map[string]named
}

// named is what metrics call a host.
type named struct {
	name  string // other: many share it
	set   attribute.Set
	parts map[part]bool // that have names
}

// part is a route or partition of a host, or a limit of its server.
type part struct {
	sort byte
	name string
}

// New sets the hooks of w, each before the one that is set already, and
// returns what reports. It is to be called before weir.New.
func New(w *weir.Config, c Config) (*Reporter, error) {
	if w == nil {
		return nil, errors.New("otelweir: the *weir.Config is nil")
	}
	if c.MaxHosts < 0 {
		return nil, fmt.Errorf("otelweir: MaxHosts: %d is negative", c.MaxHosts)
	}
	if c.MaxPartitions < 0 {
		return nil, fmt.Errorf("otelweir: MaxPartitions: %d is negative", c.MaxPartitions)
	}
	if c.MaxHosts == 0 {
		c.MaxHosts = 200
	}
	if c.MaxRoutes == 0 {
		c.MaxRoutes = 20
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	r := &Reporter{
		meter: c.MeterProvider.Meter(name), c: c, events: !c.NoEvents,
		hosts: make(map[string]named),
	}
	if err := r.instruments(); err != nil {
		return nil, fmt.Errorf("otelweir: %w", err)
	}
	w.Throttle.OnWait = then(r.onWait, w.Throttle.OnWait)
	w.Throttle.OnLearn = then(r.onLearn, w.Throttle.OnLearn)
	r.hookRetry(&w.Retry)
	r.hookBreaker(&w.Breaker)
	// Settings of their own have hooks of their own. The map may be in another
	// Config, too.
	w.Hosts = maps.Clone(w.Hosts)
	for pattern, h := range w.Hosts {
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

// host is what metrics call a host: its own name, or that of all others.
func (r *Reporter) host(host string) named {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.hosts[host]; ok {
		return n
	}
	if len(r.hosts) >= r.c.MaxHosts {
		host = other
		if n, ok := r.hosts[other]; ok {
			return n
		}
	}
	n := named{host, address(host), make(map[part]bool)}
	r.hosts[host] = n
	return n
}

// route is what metrics call a route of a host.
func (r *Reporter) route(host, route string) string {
	if route == "" || r.part(host, 'r', route, r.c.MaxRoutes) {
		return route
	}
	return other
}

// partition is what metrics call a partition of a host; "": it has no name.
func (r *Reporter) partition(host, part string) string {
	if part == "" || r.part(host, 'p', part, r.c.MaxPartitions) {
		return part
	}
	return ""
}

// part reports whether a part of a host has a name of its own, as most parts of
// its sort may have.
func (r *Reporter) part(host string, sort byte, name string, most int) bool {
	n := r.host(host)
	if n.name == other {
		return false
	}
	key := part{sort, name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.parts[key] {
		return true
	}
	have := 0
	for k := range n.parts {
		if k.sort == sort {
			have++
		}
	}
	if have >= most {
		return false
	}
	n.parts[key] = true
	return true
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
	set := r.host(host).set
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
