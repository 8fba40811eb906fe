package chaintest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestProbesEndSomehow: whatever becomes of a probe, the next one comes in
// time, and a host that works again is found.
func TestProbesEndSomehow(t *testing.T) {
	vices := map[string]testnet.Func{
		"panic":  func(*http.Request) (*http.Response, error) { panic("probe") },
		"Goexit": func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil },
		"hang":   func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"429": func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, nil, nil), nil
		},
		"503, later": func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 503, http.Header{"Retry-After": {"7"}}, nil), nil
		},
		"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
	}
	for name, vice := range vices {
		for _, patience := range []time.Duration{0, time.Minute} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { probes(t, vice, patience) })
			})
		}
	}
}

func probes(t *testing.T, vice testnet.Func, patience time.Duration) {
	var phase atomic.Int64
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(10 * time.Millisecond)
		switch phase.Load() {
		case 0:
			return nil, io.ErrUnexpectedEOF
		case 1:
			return vice(r)
		}
		return stub(r)
	}), weir.Config{Breaker: breaker.Config{Patience: patience, MaxOpenFor: 10 * time.Second}}))(t)
	send := func(limit time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		defer func() { recover() }()
		if resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
	}
	storm := func(limit time.Duration) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				send(limit)
			})
		}
		wg.Wait()
	}
	storm(time.Second)
	if rt.Circuits().State("h") == breaker.Closed {
		t.Fatal("the circuit of a host that fails is closed, want open")
	}
	phase.Store(1)
	storm(3 * time.Second)
	storm(500 * time.Millisecond)
	phase.Store(2)
	for range 60 {
		time.Sleep(time.Second)
		send(time.Second)
	}
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || rt.Circuits().State("h") != breaker.Closed {
		t.Fatalf("a minute after the host works again: error %v and a circuit that is %v, want none and closed", err, rt.Circuits().State("h"))
	}
	resp.Body.Close()
	for _, c := range rt.Stats().Breaker.Circuits {
		if c.Waiting != 0 {
			t.Errorf("%d requests wait for the circuit after all have ended", c.Waiting)
		}
	}
}

// TestForcingACircuitReachesThoseWhoWait: when an operator forces a circuit open or closed,
// those who wait for it are refused or served.
func TestForcingACircuitReachesThoseWhoWait(t *testing.T) {
	for _, s := range []breaker.State{breaker.Open, breaker.Closed} {
		synctest.Test(t, func(t *testing.T) {
			var works atomic.Bool
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				if !works.Load() {
					return nil, io.ErrUnexpectedEOF
				}
				return stub(r)
			}), weir.Config{Breaker: breaker.Config{Patience: time.Hour, OpenFor: time.Hour, MaxOpenFor: time.Hour}}))(t)
			for range 5 {
				rt.RoundTrip(must(http.NewRequest("POST", "http://h/", nil))(t))
			}
			var served, refused atomic.Int64
			for range 50 {
				go func() {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					var e *breaker.Error
					switch {
					case err == nil:
						resp.Body.Close()
						served.Add(1)
					case errors.As(err, &e):
						refused.Add(1)
					}
				}()
			}
			time.Sleep(time.Minute)
			works.Store(true)
			rt.Circuits().Force("h", s)
			time.Sleep(time.Second)
			want := map[breaker.State]int64{breaker.Open: 0, breaker.Closed: 50}[s]
			if served.Load() != want || refused.Load() != 50-want {
				t.Errorf("forced %v: %d served, %d refused, want %d and %d", s, served.Load(), refused.Load(), want, 50-want)
			}
		})
	}
}
