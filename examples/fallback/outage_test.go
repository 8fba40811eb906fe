package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
)

// Each of the three ways leaves no page without an answer while a host is down for
// a minute, whatever it does instead of answering and however many read, and its
// readers wait for 2 s.
func TestNoPageFailsInAnOutage(t *testing.T) {
	for _, way := range []string{"stale", "another host", "empty"} {
		for _, kind := range []string{"500", "503", "refused", "silent"} {
			for _, every := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, time.Second} {
				t.Run(fmt.Sprintf("%s, %s, a page every %v", way, kind, every), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { outage(t, way, kind, every) })
				})
			}
		}
	}
}

// broken is what a host that is down does with a request.
func broken(r *http.Request, kind string) (code int, err error) {
	switch kind {
	case "refused":
		return 0, errors.New("connection refused")
	case "silent":
		<-r.Context().Done()
		return 0, r.Context().Err()
	}
	return strconv.Atoi(kind)
}

func outage(t *testing.T, way, kind string, every time.Duration) {
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
			var err error
			if code, err = broken(r, kind); err != nil {
				return nil, err
			}
		}
		return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("page")), Request: r}, nil
	}), weir.Config{
		Breaker: breaker.Config{Fallback: fallback, FallbackOn: breaker.OnFailure},
		Retry:   retry.Config{MaxAttempts: 1, AttemptTimeout: attemptTimeout},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: cache.keep(transport), Timeout: 2 * time.Second}
	elsewhere.client = client
	var failed atomic.Int64
	var all sync.WaitGroup
	pages := 0
	for ; time.Since(start) < 75*time.Second; pages++ {
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
		time.Sleep(every)
	}
	all.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of %d pages failed", n, pages)
	}
	down := pages * 60 / 75
	if s := transport.Stats().Breaker.Circuits; len(s) != 1 || s[0].Fallbacks < uint64(down*5/6) {
		t.Errorf("answers of the fallback are not counted: %+v", s)
	}
	if err := transport.Close(); err != nil {
		t.Error(err)
	}
}
