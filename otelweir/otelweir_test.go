package otelweir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// moody answers 502 once, then 200, and is dead under /dead.
func moody() http.RoundTripper {
	n := 0
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/dead" {
			return nil, errors.New("connection lost")
		}
		if n++; n == 1 {
			return testnet.Answer(r, 502, nil, nil), nil
		}
		return testnet.Answer(r, 200, nil, nil), nil
	})
}

// run makes a few calls and returns what was seen on the way.
func run(t *testing.T, provider *sdk.MeterProvider, config weir.Config) tracetest.SpanStubs {
	r, err := New(&config, Config{MeterProvider: provider, MaxHosts: 3})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := weir.New(moody(), config)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.Observe(rt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	spans := tracetest.NewInMemoryExporter()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	ctx, span := traces.Tracer("test").Start(t.Context(), "call")
	call := func(url string) {
		req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		if resp, err := rt.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}
	for range 3 { // the budget lets two through at once; the first is retried
		call("http://api.example/")
	}
	for range 6 {
		call("http://api.example:8080/dead")
	}
	for i := range 5 {
		call(fmt.Sprintf("http://h%d.example/", i))
	}
	span.End()
	return spans.GetSpans()
}

func config() weir.Config {
	return weir.Config{
		Throttle: throttle.Config{Default: throttle.MustParseBudget("2/s burst 2")},
		Retry:    retry.Config{Allowance: retry.Allowance{Disable: true}},
		Breaker:  breaker.Config{Consecutive: 5, OpenFor: time.Hour, MaxOpenFor: time.Hour},
	}
}

func TestMetricsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdk.NewManualReader()
		hooked := 0
		c := config()
		c.Retry.OnAttempt = func(retry.Attempt) { hooked++ }
		spans := run(t, sdk.NewMeterProvider(sdk.WithReader(reader)), c)
		if hooked == 0 {
			t.Error("the hook that was set before is not called any more")
		}
		var rm metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &rm); err != nil {
			t.Fatal(err)
		}
		got := flatten(t, rm)
		for _, want := range []string{
			"weir.client.attempts{http.response.status_code=502,server.address=api.example,weir.outcome=", // the first
			"weir.client.resends{server.address=api.example,",
			"weir.client.circuit.changes{server.address=api.example,server.port=8080,weir.circuit.state=open} 1",
			"weir.client.circuit.state{server.address=api.example,server.port=8080} 2",
			"weir.client.circuit.state{server.address=api.example} 0",
			"weir.client.queue.length{server.address=api.example} 0",
			"weir.client.budget.left{server.address=api.example,weir.budget=2/s",
			"weir.client.wait.duration{server.address=api.example,weir.granted=true} ",
			"server.address=_other",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "h4.example") {
			t.Error("more hosts are named than MaxHosts")
		}
		events := map[string]int{}
		for _, e := range spans[0].Events {
			events[e.Name]++
		}
		for _, name := range []string{"weir.wait", "weir.attempt", "weir.circuit"} {
			if events[name] == 0 {
				t.Errorf("no event %s on the span: %v", name, events)
			}
		}
	})
}

// flatten writes metrics one to a line, by name, attributes and value.
func flatten(t *testing.T, rm metricdata.ResourceMetrics) string {
	var b strings.Builder
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					fmt.Fprintf(&b, "%s{%s} %d\n", m.Name, p.Attributes.Encoded(encoder{}), p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					fmt.Fprintf(&b, "%s{%s} %d\n", m.Name, p.Attributes.Encoded(encoder{}), p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					fmt.Fprintf(&b, "%s{%s} %g\n", m.Name, p.Attributes.Encoded(encoder{}), p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					fmt.Fprintf(&b, "%s{%s} %g\n", m.Name, p.Attributes.Encoded(encoder{}), p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					fmt.Fprintf(&b, "%s{%s} %d\n", m.Name, p.Attributes.Encoded(encoder{}), p.Count)
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return b.String()
}

func TestPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		run(t, sdk.NewMeterProvider(sdk.WithReader(exporter)), config())
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		text := w.Body.String()
		for _, want := range []string{
			"weir_client_attempts_total{", "weir_client_wait_duration_seconds_bucket{", "weir_client_budget_left",
			`http_client_request_duration_seconds_bucket{http_request_method="GET"`, "http_client_active_requests{",
			"weir_client_sent_total{", "weir_client_retries_total{", `weir_after="bad gateway"`, "weir_client_wait_time_seconds_total{",
			`weir_client_circuit_state{otel_scope_name="github.com/weirhttp/weir/otelweir"`, `server_address="api.example"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no weir.Config is no error")
	}
	if _, err := New(&weir.Config{}, Config{MaxHosts: -1}); err == nil || !strings.Contains(err.Error(), "MaxHosts") {
		t.Errorf("MaxHosts -1: %v", err)
	}
	if _, err := New(&weir.Config{}, Config{MaxPartitions: -1}); err == nil || !strings.Contains(err.Error(), "MaxPartitions") {
		t.Errorf("MaxPartitions -1: %v", err)
	}
}

func TestHostsOfTheirOwn(t *testing.T) {
	reader := sdk.NewManualReader()
	c := weir.Config{Hosts: map[string]weir.Host{"h": {Retry: &retry.Config{MaxAttempts: 1}, Breaker: &breaker.Config{Consecutive: 1}}}}
	given, original := c.Hosts, c.Hosts["h"].Retry
	if _, err := New(&c, Config{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))}); err != nil {
		t.Fatal(err)
	}
	if c.Hosts["h"].Breaker.OnStateChange == nil || c.Hosts["h"].Retry.OnAttempt == nil || original.OnAttempt != nil {
		t.Error("settings of a host are not reported, or the caller's were written to")
	}
	if given["h"].Retry != original {
		t.Error("the caller's map was written to: another Config that has it would report here as well")
	}
}
