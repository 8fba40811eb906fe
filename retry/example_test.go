package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/retry"
)

// server stands for a server that gives its answers in turn, the last one for
// ever. 0 is a connection that breaks.
type server struct {
	answers []int
	calls   int
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	status := s.answers[min(s.calls, len(s.answers)-1)]
	s.calls++
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if status == 0 {
		return nil, errors.New("connection reset by peer")
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: make(http.Header),
		Body: io.NopCloser(strings.NewReader("")), Request: r,
	}, nil
}

func at(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

func ExampleNew() {
	transport, err := retry.New(&server{answers: []int{503, 0, 200}}, retry.Config{
		MaxAttempts: 4,
		OnAttempt: func(a retry.Attempt) {
			fmt.Printf("attempt %d: %v, %v\n", a.Number, a.Outcome, a.Reason)
		},
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	resp, err := client.Get("http://api.example.com/")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output:
	// attempt 1: unavailable, retried
	// attempt 2: broken, retried
	// attempt 3: answered, not retried
	// 200
}

// A POST that may have been processed is not sent again, unless a key tells
// the server that it is the same.
func ExampleConfig_idempotencyKey() {
	for _, c := range []retry.Config{{}, {IdempotencyKey: retry.RandomKey}} {
		s := &server{answers: []int{0, 201}}
		transport, err := retry.New(s, c)
		if err != nil {
			panic(err)
		}
		client := &http.Client{Transport: transport}
		resp, err := client.Post("http://api.example.com/orders", "text/plain", strings.NewReader("one pizza"))
		if err != nil {
			fmt.Println("failed after attempts:", s.calls)
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode, "after attempts:", s.calls)
	}
	// Output:
	// failed after attempts: 1
	// 201 after attempts: 2
}

func ExampleConfig_backoff() {
	transport, err := retry.New(nil, retry.Config{
		Backoff: func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute))
		},
		Check: retryablehttp.DefaultRetryPolicy,
	})
	fmt.Println(transport != nil, err)
	// Output: true <nil>
}

func ExampleError() {
	transport, err := retry.New(&server{answers: []int{0}}, retry.Config{Backoff: at(0)})
	if err != nil {
		panic(err)
	}
	_, err = (&http.Client{Transport: transport}).Get("http://api.example.com/?key=secret")
	var e *retry.Error
	if errors.As(err, &e) {
		fmt.Println(e)
		fmt.Println(e.Attempts, e.Reason, e.Tried[0].Outcome)
	}
	// Output:
	// retry: api.example.com: no response after 3 attempts (connection reset by peer, 3 times): no attempts left
	// 3 no attempts left broken
}

func ExampleWith() {
	s := &server{answers: []int{503}}
	transport, err := retry.New(s, retry.Config{})
	if err != nil {
		panic(err)
	}
	ctx := retry.With(context.Background(), retry.Override{MaxAttempts: 1})
	r, err := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/", nil)
	if err != nil {
		panic(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, "after attempts:", s.calls)
	// Output: 503 after attempts: 1
}

func ExampleTransport_SetHost() {
	s := &server{answers: []int{503}}
	transport, err := retry.New(s, retry.Config{Backoff: at(0)})
	if err != nil {
		panic(err)
	}
	if err := transport.SetHost("*.fragile.example", retry.Config{MaxAttempts: 1}); err != nil {
		panic(err)
	}
	for _, url := range []string{"http://api.example.com/", "http://api.fragile.example/"} {
		before := s.calls
		resp, err := (&http.Client{Transport: transport}).Get(url)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(url, s.calls-before)
	}
	// Output:
	// http://api.example.com/ 3
	// http://api.fragile.example/ 1
}

func ExampleTransport_Stats() {
	transport, err := retry.New(&server{answers: []int{503, 502, 500}}, retry.Config{Backoff: at(0)})
	if err != nil {
		panic(err)
	}
	resp, err := (&http.Client{Transport: transport}).Get("http://api.example.com/")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	s := transport.Stats()
	fmt.Println(s.Attempts, s.Retries)
	fmt.Println(s.Hosts[0].Allowance < 500) // retries that fail are not paid back
	// Output:
	// 3 map[bad gateway:1 unavailable:1]
	// true
}

// Wire alone bounds each exchange without any retries.
func ExampleWire() {
	client := &http.Client{Transport: retry.Wire(&server{answers: []int{204}}, retry.Config{
		AttemptTimeout: 5 * time.Second,
		StallTimeout:   10 * time.Second,
	})}
	resp, err := client.Get("http://api.example.com/")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 204
}
