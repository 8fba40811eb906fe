package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// refusesOnce is an API that refuses the first call and says when to come back.
func refusesOnce() *httptest.Server {
	var calls atomic.Int32
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After-Ms", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
}

func ExampleNewClient() {
	server := refusesOnce()
	defer server.Close()

	client, err := weir.NewClient(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Get(server.URL) // the refusal is waited out
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// New takes any RoundTripper to send through: an http.Transport with a proxy or
// certificates of its own. What adds credentials goes around weir instead, which
// keeps apart what it learns by the Authorization that it sees.
func ExampleNew() {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 50

	transport, err := weir.New(base, weir.Config{
		Throttle: throttle.Config{Budgets: map[string]throttle.Budget{
			"api.github.com":             throttle.MustParseBudget("5000/h, 20 in flight"),
			"GET api.github.com/search/": throttle.MustParseBudget("30/m"),
		}},
		Retry: retry.Config{MaxAttempts: 4},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	fmt.Println(client.Transport == transport)
	// Output: true
}

// A field that contradicts itself or another is an error that names it.
func ExampleNew_error() {
	_, err := weir.New(nil, weir.Config{
		Retry:   retry.Config{AttemptTimeout: 10 * time.Minute},
		Breaker: breaker.Config{Window: time.Minute},
	})
	fmt.Println(err)
	// Output: weir: Breaker.Window: 1m0s is shorter than twice Retry.AttemptTimeout (10m0s): attempts that time out would not count
}

// A model that thinks before it answers needs more than the 30 s to the first
// header that other hosts have.
func ExampleConfig_hosts() {
	patient := retry.Config{AttemptTimeout: 10 * time.Minute}
	_, err := weir.NewClient(weir.Config{
		Hosts: map[string]weir.Host{"api.openai.com": {Retry: &patient}},
	})
	fmt.Println(err)
	// Output: <nil>
}

// What became of a call, when there is no response.
func ExampleTransport_RoundTrip_errors() {
	client, err := weir.NewClient(weir.Config{
		Throttle: throttle.Config{Default: throttle.MustParseBudget("1/h")},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if resp, err := client.Get(server.URL); err == nil {
		resp.Body.Close()
	}
	_, err = client.Get(server.URL)

	var full *throttle.Error // no room in time
	var open *breaker.Error  // the host's circuit is open
	var lost *retry.Error    // no response after several attempts
	switch {
	case errors.As(err, &full):
		fmt.Println(full.Reason, full.RetryAfter.Round(time.Minute))
	case errors.As(err, &open):
		fmt.Println("open for another", open.RetryAfter)
	case errors.As(err, &lost):
		fmt.Println("lost after", lost.Attempts)
	}
	fmt.Println("nothing was sent:", errors.Is(err, weir.ErrNotSent))
	// Output:
	// wait too long 1h0m0s
	// nothing was sent: true
}

// Pauses by hand, for maintenance that was announced.
func ExampleTransport_Throttle() {
	client, err := weir.NewClient(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	transport := client.Transport.(*weir.Transport)
	transport.Throttle().Pause("api.example.com", time.Now().Add(time.Hour))

	ctx := throttle.WithMaxWait(context.Background(), time.Minute)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/", nil)
	_, err = client.Do(req)
	fmt.Println(err)
	transport.Throttle().Resume("api.example.com")
	// Output: Get "https://api.example.com/": throttle: api.example.com: paused: wait of 1h0m0s exceeds the 1m0s limit (paused by hand)
}

func ExampleTransport_Stats() {
	server := refusesOnce()
	defer server.Close()
	transport, err := weir.New(nil, weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()

	stats := transport.Stats()
	for _, host := range stats.Throttle.Hosts {
		fmt.Println(host.Granted, "sent,", host.Throttled, "throttled,", host.Waited, "waited")
	}
	fmt.Println(stats.Retry.Requests, "request,", stats.Retry.Attempts, "attempts")
	fmt.Println(stats.Breaker.Circuits)
	// Output:
	// 2 sent, 1 throttled, 1 waited
	// 1 request, 2 attempts
	// []
}
