package otelweir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// watched is a Transport whose metrics are read.
type watched struct {
	*weir.Transport
	t      *testing.T
	reader *sdk.ManualReader
}

func watch(t *testing.T, base func(*http.Request) (*http.Response, error), c weir.Config, o Config) watched {
	t.Helper()
	reader := sdk.NewManualReader()
	o.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	r, err := New(&c, o)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := weir.New(testnet.Func(base), c)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.Observe(rt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	return watched{rt, t, reader}
}

// call makes a request and reports whether there was an answer.
func (w watched) call(ctx context.Context, method, url string) bool {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		w.t.Error(err)
		return false
	}
	resp, err := w.RoundTrip(r)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// metrics are all that is reported, one to a line.
func (w watched) metrics() string {
	w.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &rm); err != nil {
		w.t.Fatal(err)
	}
	return flatten(w.t, rm)
}

func (w watched) wants(lines ...string) {
	w.t.Helper()
	got := w.metrics()
	for _, line := range lines {
		if !strings.Contains(got, line+"\n") {
			w.t.Errorf("no %q in\n%s", line, got)
		}
	}
}

// TestCounts: what Stats counts is reported by route, with reasons.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := weir.Config{}
		c.Throttle.Budgets = map[string]throttle.Budget{"GET api.example/search": throttle.MustParseBudget("2/m burst 2")}
		c.Throttle.DisableLearning = true
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			time.Sleep(250 * time.Millisecond)
			if n++; n == 1 {
				return testnet.Answer(r, 503, http.Header{}, http.NoBody), nil
			}
			return testnet.Answer(r, 200, http.Header{}, http.NoBody), nil
		}, c, Config{})
		ctx := t.Context()
		w.call(ctx, "GET", "http://api.example/items/1") // and again
		for range 4 {                                    // the third waits for a minute, after which there is room for two
			w.call(ctx, "GET", "http://api.example/search")
		}
		if w.call(throttle.WithMaxWait(ctx, -1), "GET", "http://api.example/search") {
			t.Error("a fifth search")
		}
		go w.call(ctx, "GET", "http://api.example/search")
		time.Sleep(10 * time.Second)
		w.Throttle().Pause("api.example", time.Now().Add(time.Hour))
		synctest.Wait()
		w.wants(
			`weir.client.sent{server.address=api.example,weir.route=GET /items} 2`,
			`weir.client.retries{server.address=api.example,weir.after=unavailable,weir.route=GET /items} 1`,
			`weir.client.sent{server.address=api.example,weir.route=GET api.example/search} 4`,
			`weir.client.waits{server.address=api.example,weir.route=GET api.example/search} 2`,
			`weir.client.refusals{server.address=api.example,weir.reason=wait too long,weir.route=GET api.example/search} 1`,
			`weir.client.refusals{server.address=api.example,weir.reason=paused,weir.route=GET api.example/search} 1`, // the one that waited
			`weir.client.answers{server.address=api.example,weir.route=GET api.example/search} 4`,
			`weir.client.answer.time{server.address=api.example,weir.route=GET api.example/search} 1`,
			`weir.client.pauses{server.address=api.example} 1`,
			`weir.client.wait.expected{server.address=api.example,weir.route=GET /items} 3600`,
			`weir.client.retry.allowance{server.address=api.example} 500`,
			`http.client.active_requests{server.address=api.example} 0`,
			`http.client.request.duration{error.type=503,http.request.method=GET,http.response.status_code=503,server.address=api.example} 1`,
			`http.client.request.duration{http.request.method=GET,http.response.status_code=200,server.address=api.example} 5`,
		)
	})
}

// TestNow: queue, oldest wait, requests in flight and what the server said is left.
func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{}
		c.Throttle.Default = throttle.MustParseBudget("1 in flight")
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				time.Sleep(time.Minute)
			}
			h := http.Header{"Ratelimit-Policy": {`"core";q=100;w=3600`}, "Ratelimit": {`"core";r=42;t=3000`}}
			return testnet.Answer(r, 200, h, http.NoBody), nil
		}, c, Config{})
		w.call(t.Context(), "GET", "http://api.example:8080/")
		for range 3 {
			go w.call(t.Context(), "GET", "http://api.example:8080/slow")
		}
		time.Sleep(7 * time.Second)
		w.wants(
			`weir.client.queue.length{server.address=api.example,server.port=8080} 2`,
			`weir.client.queue.oldest{server.address=api.example,server.port=8080} 7`,
			`http.client.active_requests{server.address=api.example,server.port=8080} 1`,
			`weir.client.limit.left{server.address=api.example,server.port=8080,weir.route=GET /,weir.source=said by RateLimit,weir.unit=requests} 42`,
			`weir.client.budget.left{server.address=api.example,server.port=8080,weir.budget=1 in flight,weir.pattern=,weir.unit=} 0`,
		)
		time.Sleep(5 * time.Minute)
	})
}

// TestCircuitMetrics: trips and refusals, by itself and by hand.
func TestCircuitMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Breaker: breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour}}
		c.Retry.MaxAttempts = 1
		w := watch(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("connection lost") }, c, Config{})
		for range 7 {
			w.call(t.Context(), "GET", "http://api.example/")
		}
		w.wants(
			`weir.client.circuit.trips{server.address=api.example} 1`,
			`weir.client.circuit.refusals{server.address=api.example} 2`,
			`weir.client.circuit.forced{server.address=api.example} 0`,
			`weir.client.circuit.state{server.address=api.example} 2`,
			`http.client.request.duration{error.type=broken,http.request.method=GET,server.address=api.example} 5`,
		)
		w.Circuits().Force("api.example", breaker.Open)
		w.call(t.Context(), "GET", "http://api.example/")
		w.wants(
			`weir.client.circuit.trips{server.address=api.example} 1`,
			`weir.client.circuit.refusals{server.address=api.example} 3`,
			`weir.client.circuit.forced{server.address=api.example} 1`,
		)
	})
}

// A host that turns most requests away, or whose circuit is open, shows as refusing, and
// what a fallback answered is counted.
func TestRefusingMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Throttle: throttle.Config{MaxWait: -1, Budgets: map[string]throttle.Budget{"busy.example": throttle.MustParseBudget("1/h")}}}
		c.Breaker.Fallback = func(r *http.Request, _ error) (*http.Response, error) { return testnet.Answer(r, 200, nil, nil), nil }
		w := watch(t, func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 200, nil, nil), nil }, c, Config{})
		w.call(t.Context(), "GET", "http://api.example/")
		for range 9 {
			w.call(t.Context(), "GET", "http://busy.example/")
		}
		w.Circuits().Force("down.example", breaker.Open)
		for range 4 {
			w.call(t.Context(), "GET", "http://down.example/")
		}
		w.wants(
			`weir.client.refusing{server.address=api.example} 0`,
			`weir.client.refusing{server.address=busy.example} 1`,
			`weir.client.refusing{server.address=down.example} 1`,
			`weir.client.circuit.fallbacks{server.address=down.example} 4`,
			`weir.client.circuit.refusals{server.address=down.example} 4`,
		)
	})
}

// The type of an error tells a caller's deadline from a cancellation.
func TestErrorTypeOfACallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, weir.Config{}, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		w.call(ctx, "GET", "http://api.example/")
		cancel()
		for range 2 {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			w.call(ctx, "GET", "http://api.example/")
		}
		w.wants(
			`http.client.request.duration{error.type=deadline exceeded,http.request.method=GET,server.address=api.example} 1`,
			`http.client.request.duration{error.type=canceled,http.request.method=GET,server.address=api.example} 2`,
		)
	})
}

// TestCardinality: whatever hosts, routes, methods and partitions there are, the
// number of time series is bounded, and sums lose nothing.
func TestCardinality(t *testing.T) {
	c := weir.Config{}
	c.Throttle.Partition = func(r *http.Request) string { return r.Header.Get("Key") }
	w := watch(t, func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{}, http.NoBody), nil
	}, c, Config{MaxHosts: 5, MaxRoutes: 3})
	for i := range 50 {
		for k := range 6 {
			r, _ := http.NewRequest(fmt.Sprintf("M%d", i), fmt.Sprintf("http://h%d.example/p%d", i, k), nil)
			r.Header.Set("Key", fmt.Sprint(k%2))
			resp, err := w.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	got, series, sum := w.metrics(), 0, 0
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "weir.client.sent{") {
			var n int
			fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n)
			sum += n
			series++
		}
		if strings.HasPrefix(line, "http.client.request.duration{") && !strings.Contains(line, "http.request.method=_OTHER") {
			t.Errorf("a method that nobody knows: %s", line)
		}
	}
	if series != 5*4+1 || sum != 300 {
		t.Errorf("%d series with %d attempts, want 21 with 300\n%s", series, sum, got)
	}
	if strings.Contains(got, "weir.partition") {
		t.Error("partitions are told apart")
	}
	if !strings.Contains(got, "weir.client.sent{server.address=h0.example,weir.route=_other} 3\n") {
		t.Errorf("a host's other routes are not added up in\n%s", got)
	}
}

// TestResends: an attempt after the first counts as one, and so does no first.
func TestResends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			n++
			return testnet.Answer(r, []int{200, 502, 200}[(n-1)%3], nil, nil), nil
		}, weir.Config{}, Config{})
		w.call(t.Context(), "GET", "http://api.example/")
		w.call(t.Context(), "GET", "http://api.example/")
		w.wants(`weir.client.resends{server.address=api.example,weir.outcome=answered} 1`)
	})
}

// TestPartitions: they are told apart if that is wanted.
func TestPartitions(t *testing.T) {
	c := weir.Config{}
	c.Throttle.Partition = func(r *http.Request) string { return r.URL.Query().Get("key") }
	w := watch(t, func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{}, http.NoBody), nil
	}, c, Config{MaxPartitions: 2})
	for i := range 4 {
		w.call(t.Context(), "GET", fmt.Sprintf("http://api.example/?key=secret%d", i))
	}
	got := w.metrics()
	if n := strings.Count(got, "weir.client.sent{server.address=api.example,weir.partition="); n != 2 || strings.Contains(got, "secret") {
		t.Errorf("%d partitions in\n%s", n, got)
	}
	if !strings.Contains(got, "weir.client.sent{server.address=api.example,weir.route=GET /} 2\n") {
		t.Errorf("the others are lost:\n%s", got)
	}
}

// TestPartitionsWait: waits of a host's partitions are waits of the host, and
// what is learned about one of them is learned about it.
func TestPartitionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{}
		c.Throttle.Default = throttle.MustParseBudget("1/s burst 1")
		c.Throttle.Partition = func(r *http.Request) string { return r.URL.Query().Get("key") }
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"100"}, "X-Ratelimit-Remaining": {"50"}, "X-Ratelimit-Reset": {"60"}}, http.NoBody), nil
		}, c, Config{MaxHosts: 3})
		for i := range 5 {
			for range 2 {
				w.call(t.Context(), "GET", fmt.Sprintf("http://api.example:8080/?key=%d", i))
			}
		}
		w.call(t.Context(), "GET", "http://late.example/")
		w.wants(
			`weir.client.wait.duration{server.address=api.example,server.port=8080,weir.granted=true} 5`,
			`weir.client.learned{server.address=api.example,server.port=8080} 5`,
			`weir.client.sent{server.address=late.example,weir.route=GET /} 1`,
		)
		got := w.metrics()
		for _, gauge := range []string{"weir.client.budget.left", "weir.client.limit.left"} {
			if strings.Contains(got, gauge+"{server.address=api.example") || !strings.Contains(got, gauge+"{server.address=late.example") {
				t.Errorf("%s tells as one what each partition has for itself:\n%s", gauge, got)
			}
		}
	})
}

// TestCardinalityOfLimits: a server makes up headers and units as it likes, and
// there are not many time series of them, however often one looks.
func TestCardinalityOfLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := watch(t, func(r *http.Request) (*http.Response, error) {
			n++
			h := http.Header{}
			for _, field := range []string{"Limit", "Remaining", "Reset"} {
				h.Set(fmt.Sprintf("X-Made%dup-Ratelimit-%s", n, field), "10")
				h.Set(fmt.Sprintf("X-Ratelimit-%s-Unit%d", field, n), "20")
			}
			h.Set("Ratelimit-Policy", fmt.Sprintf(`"a%d";q=10;w=60;qu="unit%d"`, n, n))
			h.Set("Ratelimit", fmt.Sprintf(`"a%d";r=5;t=60`, n))
			return testnet.Answer(r, 200, h, http.NoBody), nil
		}, weir.Config{}, Config{})
		series := map[string]bool{}
		for range 60 {
			w.call(t.Context(), "GET", "http://api.example/")
			for line := range strings.Lines(w.metrics()) {
				if name, _, _ := strings.Cut(line, "} "); strings.HasPrefix(name, "weir.client.limit.left{") {
					series[name] = true
				}
			}
			time.Sleep(time.Minute)
		}
		if len(series) == 0 || len(series) > maxBudgets {
			t.Errorf("%d series: %v", len(series), slices.Sorted(maps.Keys(series)))
		}
	})
}

// TestLedger: sums grow by what is new, also after a host was forgotten, and never
// fall.
func TestLedger(t *testing.T) {
	r, err := New(&weir.Config{}, Config{MeterProvider: sdk.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{r: r, totals: make(map[source]*total)}
	for _, step := range []struct{ granted, want int64 }{
		{10, 10}, {10, 10}, {15, 15}, {14, 15}, {15, 15}, {16, 16}, {0, 16}, {3, 19}, {4, 20}, {1, 21},
	} {
		s := weir.Stats{}
		if step.granted > 0 {
			h := throttle.HostStats{Host: "api.example", Routes: []throttle.RouteStats{{Route: "GET /"}}}
			h.Routes[0].Granted = step.granted
			s.Throttle.Hosts = []throttle.HostStats{h}
		}
		l.read(s)
		if got := l.totals[source{instrument: sent, host: "api.example", route: "GET /"}].n; got != float64(step.want) {
			t.Errorf("%d granted: %v in all, want %d", step.granted, got, step.want)
		}
	}
}
