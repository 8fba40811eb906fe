package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
)

// Each of the three ways leaves no page without an answer while a host is down for
// a minute, and its readers wait for 2 s.
func TestNoPageFailsInAnOutage(t *testing.T) {
	for _, way := range []string{"stale", "another host", "empty"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outage(t, way) })
		})
	}
}

func outage(t *testing.T, way string) {
	const news, mirror = "http://news.example", "http://mirror.example"
	start := time.Now()
	cache := newCache(1 << 20)
	elsewhere := &otherHost{from: news, to: mirror}
	fallback := map[string]func(*http.Request, error) (*http.Response, error){
		"stale": cache.fallback, "another host": elsewhere.fallback, "empty": empty,
	}[way]
	transport, err := weir.New(roundTripper(func(r *http.Request) (*http.Response, error) {
		time.Sleep(10 * time.Millisecond)
		code := http.StatusOK
		if at := time.Since(start); r.URL.Host == "news.example" && at >= 5*time.Second && at < 65*time.Second {
			code = http.StatusServiceUnavailable
		}
		return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("page")), Request: r}, nil
	}), weir.Config{Breaker: breaker.Config{Fallback: fallback, FallbackOn: breaker.OnFailure}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: cache.keep(transport), Timeout: 2 * time.Second}
	elsewhere.client = client
	var failed atomic.Int64
	var all sync.WaitGroup
	for time.Since(start) < 75*time.Second {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, news+"/suggestions/a", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil || resp.StatusCode >= 300 {
				failed.Add(1)
			}
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
		time.Sleep(50 * time.Millisecond)
	}
	all.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of 1500 pages failed", n)
	}
	if s := transport.Stats().Breaker.Circuits; len(s) != 1 || s[0].Fallbacks < 1000 {
		t.Errorf("answers of the fallback are not counted: %+v", s)
	}
	if err := transport.Close(); err != nil {
		t.Error(err)
	}
}
