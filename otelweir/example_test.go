package otelweir_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/otelweir"
)

// A program that Prometheus scrapes.
func Example() {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		panic(err)
	}
	config := weir.Config{}
	reporter, err := otelweir.New(&config, otelweir.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	if err != nil {
		panic(err)
	}
	transport, err := weir.New(nil, config)
	if err != nil {
		panic(err)
	}
	defer transport.Close()
	stop, err := reporter.Observe(transport)
	if err != nil {
		panic(err)
	}
	defer stop()

	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()
	client := &http.Client{Transport: transport}
	for range 3 {
		resp, err := client.Get(api.URL)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
	}

	scraped := httptest.NewRecorder() // http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scraped, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scraped.Body.String()) {
		if strings.HasPrefix(line, "weir_client_attempts_total") {
			fmt.Println(line[:len("weir_client_attempts_total")], line[strings.LastIndex(line, " ")+1:])
		}
	}
	// Output: weir_client_attempts_total 3
}
