package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// The hosts of the scripted run. Each is in one state, and stays there.
const (
	cdn      = "cdn.example"      // has room
	github   = "api.github.test"  // states its limit
	search   = "search.example"   // its budget is spent, requests wait
	payments = "payments.example" // said to come back later
	down     = "down.example"     // cannot be reached
	shop     = "shop.example"     // its routes fare differently
	hostile  = `"><img src=x onerror=document.title='pwned'>`
)

// apis plays all of these hosts in memory.
type apis struct {
	mu   sync.Mutex
	left int // of what github allows
}

func (a *apis) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resp := &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r,
	}
	switch r.URL.Host {
	case github:
		a.left--
		resp.Header.Set("RateLimit-Policy", `"core";q=100;w=3600`)
		resp.Header.Set("RateLimit", fmt.Sprintf(`"core";r=%d;t=3000`, a.left))
	case payments:
		resp.StatusCode = 429
		resp.Header.Set("Retry-After", "1800") // longer than a test may take
	case shop:
		if r.URL.Path == "/orders/1" {
			resp.Header.Set("RateLimit-Policy", `"orders";q=5;w=3600`)
			resp.Header.Set("RateLimit", `"orders";r=0;t=3000`)
		}
	case down:
		return nil, errors.New("connection refused")
	}
	return resp, nil
}

// run is the scripted run: what the page must show is known from it alone.
type run struct {
	t    *testing.T
	weir *weir.Transport
	page *httptest.Server
	gone [3]context.CancelFunc // of the requests that wait: two of search, one of shop
}

// start makes the requests of the script and serves the page.
func start(t *testing.T, page inspect.Config) *run {
	c := weir.Config{}
	c.Throttle.MaxWait = 2 * time.Hour
	c.Throttle.Budgets = map[string]throttle.Budget{
		cdn:    throttle.MustParseBudget("1000/h burst 1000, 8 in flight"),
		search: throttle.MustParseBudget("3/h burst 3"),
		find:   throttle.MustParseBudget("2/h burst 2"),
	}
	c.Retry.MaxAttempts = 1
	c.Breaker.OpenFor, c.Breaker.MaxOpenFor = 30*time.Minute, time.Hour
	w, err := weir.New(&apis{left: 100}, c)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, weir: w, page: httptest.NewServer(inspect.Handler(w, page))}
	t.Cleanup(func() {
		r.page.CloseClientConnections()
		r.page.Close()
		w.Close()
	})
	r.send(cdn, 40)
	r.send(github, 20)
	r.send(search, 3)
	r.send(hostile, 1)
	r.send(down, 9) // five open the circuit, four are refused
	r.send(payments, 1)
	r.shopping()
	return r
}

// The routes of shop, as the page is to call them.
const (
	find   = "GET " + shop + "/find"
	items  = "GET /items"
	orders = "POST /orders"
)

// shopping makes 4 requests of items, one of orders, after which none is left, and
// two of find, after which one is turned away.
func (r *run) shopping() {
	for range 4 {
		r.call(context.Background(), "GET", "/items/7")
	}
	r.call(context.Background(), "POST", "/orders/1")
	r.call(context.Background(), "GET", "/find")
	r.call(context.Background(), "GET", "/find")
	if err := r.call(throttle.WithMaxWait(context.Background(), -1), "GET", "/find"); err == nil {
		r.t.Error("a request went beyond the budget")
	}
}

// call makes a request of shop.
func (r *run) call(ctx context.Context, method, path string) error {
	q := request(ctx, shop)
	q.Method, q.URL.Path = method, path
	resp, err := r.weir.RoundTrip(q)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// send makes n requests that do not wait, one after the other.
func (r *run) send(host string, n int) {
	r.t.Helper()
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		resp, err := r.weir.RoundTrip(request(ctx, host))
		if err == nil {
			resp.Body.Close()
		} else if host != down {
			r.t.Fatal(err)
		}
		cancel()
	}
}

// wait makes two requests of search and one of shop, which wait until they are
// called off.
func (r *run) wait() {
	var done sync.WaitGroup
	for i := range r.gone {
		ctx, cancel := context.WithCancel(context.Background())
		r.gone[i] = cancel
		done.Go(func() {
			if i == 2 {
				if err := r.call(ctx, "GET", "/find"); err == nil {
					r.t.Error("a request went beyond the budget")
				}
				return
			}
			if resp, err := r.weir.RoundTrip(request(ctx, search)); err == nil {
				resp.Body.Close()
				r.t.Error("a request went beyond the budget")
			}
		})
	}
	r.t.Cleanup(func() {
		for _, leave := range r.gone {
			leave()
		}
		done.Wait()
	})
}

func request(ctx context.Context, host string) *http.Request {
	r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: host, Path: "/"}, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return r.WithContext(ctx)
}

// The hosts of turnAway.
const (
	crowded = "crowded.example" // its budget is spent, and nobody may wait
	shut    = "shut.example"    // its circuit is open, and a fallback answers
	fine    = "fine.example"
)

// turnAway makes requests of which most are turned away.
func turnAway(t *testing.T) *run {
	c := weir.Config{}
	c.Throttle.MaxWait = -1
	c.Throttle.Budgets = map[string]throttle.Budget{crowded: throttle.MustParseBudget("1/h")}
	c.Breaker.Fallback = func(r *http.Request, _ error) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	w, err := weir.New(&apis{}, c)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, weir: w, page: httptest.NewServer(inspect.Handler(w, inspect.Config{}))}
	t.Cleanup(func() {
		r.page.CloseClientConnections()
		r.page.Close()
		w.Close()
	})
	r.send(fine, 1)
	r.send(shut, 1)
	w.Circuits().Force(shut, breaker.Open)
	r.send(shut, 4)
	refuse := func() {
		if resp, err := w.RoundTrip(request(context.Background(), crowded)); err == nil {
			resp.Body.Close()
		}
	}
	for range 10 {
		refuse()
	}
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { // a host is refusing as long as it goes on
		for {
			select {
			case <-time.After(time.Second):
				refuse()
			case <-over:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		done.Wait()
	})
	return r
}
