package page

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// TestShots takes the pictures in docs/img, after a minute of traffic, when
// the environment has WEIR_SHOTS=1:
//
//	WEIR_SHOTS=1 go test -run TestShots ./page
func TestShots(t *testing.T) {
	if os.Getenv("WEIR_SHOTS") == "" {
		t.Skip("WEIR_SHOTS is not set")
	}
	b := browser(t)
	page, stop := busy(t)
	defer stop()
	b.look(1200, 820, "light")
	b.open(page)
	b.js(`location.hash = "host=maps.example"`) // the charts begin
	time.Sleep(75 * time.Second)
	take := func(name string, width, height int64, scheme, hash, there string) {
		b.look(width, height, scheme)
		b.js(`location.hash = ` + quote(hash))
		b.until(there, "true")
		time.Sleep(1500 * time.Millisecond) // a frame in the new colours
		b.js(`document.activeElement.blur()`)
		file := filepath.Join("..", "..", "docs", "img", name)
		if err := os.WriteFile(file, b.shot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const one = `document.querySelectorAll("#charts canvas").length === 4`
	const all = `document.getElementById("one").hidden`
	take("host.png", 1200, 1090, "light", "host=maps.example", one)
	take("host-dark.png", 1200, 1090, "dark", "host=maps.example", one)
	take("hosts.png", 1200, 860, "light", "", all)
	take("hosts-dark.png", 1200, 860, "dark", "", all)
	take("narrow.png", 360, 740, "light", "", all)
}

// busy plays a program with more to do than its APIs allow.
func busy(t *testing.T) (page string, stop func()) {
	c := weir.Config{}
	c.Throttle.Budgets = map[string]throttle.Budget{
		"maps.example":              throttle.MustParseBudget("10/s, 5000/d burst 5000, 8 in flight"),
		"GET maps.example/geocode/": throttle.MustParseBudget("4/s"),
		"files.example":             throttle.MustParseBudget("20 in flight"),
	}
	c.Breaker.OpenFor, c.Breaker.MaxOpenFor = 5*time.Minute, 10*time.Minute
	start := time.Now()
	w, err := weir.New(world(start), c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(inspect.Handler(w, inspect.Config{}))
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	do := func(host, path string, patience time.Duration) {
		done.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			r := request(ctx, host)
			r.URL.Path = path
			if resp, err := w.RoundTrip(r); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			// Demand comes and goes in waves of half a minute.
			if wave := 1 + math.Sin(time.Since(start).Seconds()/5); float64(n%10) < 5*wave {
				do("maps.example", "/geocode/1", 4*time.Second)
			}
			if n%3 == 0 {
				do("maps.example", "/tiles/1", 4*time.Second)
			}
			do("cdn.example", "/", time.Minute)
			if n%4 == 0 {
				do("tickets.example", "/search", time.Minute)
				do("files.example", "/", time.Minute)
			}
			if n%50 == 0 {
				do("maps.example", "/routes/1", 4*time.Second)
				do("mail.example", "/", time.Second)
				do("payments.example", "/", time.Second)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return server.URL, func() {
		cancel()
		done.Wait()
		server.CloseClientConnections()
		server.Close()
		w.Close()
	}
}

type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

// world plays the APIs of busy.
func world(start time.Time) base {
	var mu sync.Mutex
	tickets := make(map[int]int) // used, by minute
	return func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{
			StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r,
		}
		time.Sleep(80 * time.Millisecond)
		switch r.URL.Host {
		case "tickets.example":
			mu.Lock()
			age := int(time.Since(start).Seconds())
			tickets[age/60]++
			left := 300 - tickets[age/60]
			mu.Unlock()
			resp.Header.Set("RateLimit-Policy", `"search";q=300;w=60`)
			resp.Header.Set("RateLimit", fmt.Sprintf(`"search";r=%d;t=%d`, left, 60-age%60))
		case "payments.example":
			resp.StatusCode = 429
			resp.Header.Set("Retry-After", "240")
		case "mail.example":
			resp.StatusCode = 502
			if time.Since(start) > 3*time.Second {
				return nil, fmt.Errorf("dial tcp: connection refused")
			}
		}
		return resp, nil
	}
}
