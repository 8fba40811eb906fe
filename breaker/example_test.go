package breaker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// upstream is a host that can be switched off.
type upstream struct{ down bool }

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.down {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("fresh")), Request: r}, nil
}

func Example() {
	circuits, err := breaker.NewCircuits(breaker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	host := &upstream{down: true}
	client := &http.Client{Transport: circuits.Door(circuits.Meter(host))}

	for range 5 {
		client.Get("https://api.example.com/")
	}
	fmt.Println(circuits.State("api.example.com"))

	_, err = client.Get("https://api.example.com/")
	var refused *breaker.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Host, refused.State, refused.RetryAfter <= 300*time.Millisecond)
	}
	// Output:
	// open
	// api.example.com open true
}

func ExampleNewCircuits() {
	_, err := breaker.NewCircuits(breaker.Config{FailureRate: 50})
	fmt.Println(err)
	// Output: breaker: FailureRate 50 is not between 0 and 1
}

func ExampleCircuits_Force() {
	circuits, _ := breaker.NewCircuits(breaker.Config{})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(&upstream{}))}

	circuits.Force("api.example.com", breaker.Open) // maintenance
	_, err := client.Get("https://api.example.com/")
	fmt.Println(err)
	circuits.Release("api.example.com")
	resp, err := client.Get("https://api.example.com/")
	fmt.Println(resp.StatusCode, err)
	// Output:
	// Get "https://api.example.com/": breaker: api.example.com: circuit is open
	// 200 <nil>
}

func ExampleCircuits_SetHost() {
	circuits, _ := breaker.NewCircuits(breaker.Config{})
	err := circuits.SetHost("*.batch.example.com", breaker.Config{Consecutive: 50, MaxOpenFor: 10 * time.Second})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleCircuits_Stats() {
	circuits, _ := breaker.NewCircuits(breaker.Config{})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(&upstream{down: true}))}
	for range 8 {
		client.Get("https://api.example.com/")
	}
	for _, c := range circuits.Stats().Circuits {
		fmt.Printf("%s is %v: %s; %d refused\n", c.Host, c.State, c.Reason, c.Refused)
	}
	// Output: api.example.com is open: 5 failures in a row without an answer; 3 refused
}

func ExampleChange() {
	circuits, _ := breaker.NewCircuits(breaker.Config{
		OnStateChange: func(c breaker.Change) {
			fmt.Printf("%s: %v -> %v: %s\n", c.Host, c.From, c.To, c.Reason)
		},
	})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(&upstream{down: true}))}
	for range 5 {
		client.Get("https://api.example.com/")
	}
	// Output: api.example.com: closed -> open: 5 failures in a row without an answer
}

// function is a base in one function.
type function func(*http.Request) (*http.Response, error)

func (f function) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A host that is overloaded says so with status 200 and a header: the program
// knows what its host means.
func ExampleOutcome() {
	circuits, _ := breaker.NewCircuits(breaker.Config{
		Classify: func(resp *http.Response, err error) breaker.Outcome {
			if err == nil && resp.Header.Get("X-Degraded") == "true" {
				return breaker.Failure
			}
			return breaker.Default
		},
	})
	degraded := function(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"X-Degraded": {"true"}}, Body: http.NoBody, Request: r}, nil
	})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(degraded))}
	for range 20 {
		client.Get("https://search.example.com/")
	}
	fmt.Println(circuits.State("search.example.com"))
	// Output: open
}

// One bad tenant does not stop the others: each first path segment has a
// circuit of its own.
func ExampleConfig_shard() {
	circuits, _ := breaker.NewCircuits(breaker.Config{
		Shard: func(r *http.Request) string {
			tenant, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			return tenant
		},
	})
	host := function(func(r *http.Request) (*http.Response, error) {
		return (&upstream{down: strings.HasPrefix(r.URL.Path, "/acme/")}).RoundTrip(r)
	})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(host))}
	for range 5 {
		client.Get("https://api.example.com/acme/orders")
	}
	_, err := client.Get("https://api.example.com/acme/orders")
	var refused *breaker.Error
	fmt.Println("acme refused:", errors.As(err, &refused))
	resp, err := client.Get("https://api.example.com/initech/orders")
	fmt.Println("initech:", resp.StatusCode, err)
	// Output:
	// acme refused: true
	// initech: 200 <nil>
}

// store keeps the last good answer of each URL, as an HTTP cache does.
type store struct {
	base http.RoundTripper
	mu   sync.Mutex
	last map[string][]byte
}

func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.base.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.last[r.URL.String()] = body
	s.mu.Unlock()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// stale answers with what the store has.
func (s *store) stale(r *http.Request, refused error) (*http.Response, error) {
	s.mu.Lock()
	body, ok := s.last[r.URL.String()]
	s.mu.Unlock()
	if !ok || r.Method != http.MethodGet {
		return nil, nil // the refusal stands
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Warning": {`110 - "Response is Stale"`}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}, nil
}

// While the circuit is open the last good answer is served, and marked.
func ExampleConfig_serveStale() {
	host := &upstream{}
	cache := &store{base: host, last: make(map[string][]byte)}
	circuits, _ := breaker.NewCircuits(breaker.Config{Fallback: cache.stale})
	client := &http.Client{Transport: circuits.Door(circuits.Meter(cache))}

	for i := range 7 {
		host.down = i > 0
		resp, err := client.Get("https://api.example.com/prices")
		if err != nil {
			fmt.Println("error")
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s, stale: %t\n", body, resp.Header.Get("Warning") != "")
	}
	// Output:
	// fresh, stale: false
	// error
	// error
	// error
	// error
	// fresh, stale: true
	// fresh, stale: true
}

// While the circuit is open another host answers.
func ExampleConfig_anotherHost() {
	second := &upstream{}
	circuits, _ := breaker.NewCircuits(breaker.Config{
		Fallback: func(r *http.Request, refused error) (*http.Response, error) {
			if r.URL.Host == "mirror.example.com" {
				return nil, nil
			}
			q := r.Clone(r.Context())
			q.URL.Host, q.Host = "mirror.example.com", ""
			if r.Body != nil && r.Body != http.NoBody {
				if r.GetBody == nil {
					return nil, nil
				}
				var err error
				if q.Body, err = r.GetBody(); err != nil {
					return nil, err
				}
			}
			return second.RoundTrip(q)
		},
	})
	circuits.Force("api.example.com", breaker.Open)
	client := &http.Client{Transport: circuits.Door(circuits.Meter(&upstream{}))}
	resp, err := client.Post("https://api.example.com/orders", "text/plain", strings.NewReader("one"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, "from", resp.Request.URL.Host)
	// Output: 200 from mirror.example.com
}

// A circuit for what is no HTTP host: a database, a queue.
func ExampleCircuits_Do() {
	circuits, _ := breaker.NewCircuits(breaker.Config{})
	query := func(context.Context) error { return errors.New("connection refused") }
	for range 6 {
		err := circuits.Do(context.Background(), "orders-db", query)
		var refused *breaker.Error
		fmt.Println(errors.As(err, &refused), circuits.State("orders-db"))
	}
	// Output:
	// false closed
	// false closed
	// false closed
	// false closed
	// false open
	// true open
}
