package chaintest

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestAnAnswerAtTheTimeoutIsWholeOrNone: an answer that comes in the instant of the
// timeout is returned whole or not at all.
func TestAnAnswerAtTheTimeoutIsWholeOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed, made atomic.Int64
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			made.Add(1)
			b := testnet.NewBody("whole")
			closed.Add(1)
			return testnet.Answer(r, 200, nil, &counted{b, &closed, sync.Once{}}), nil
		})
		rt := must(weir.New(base, weir.Config{Retry: retry.Config{AttemptTimeout: time.Second}, Breaker: breaker.Config{Disable: true}}))(t)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 4 {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					if err != nil {
						continue
					}
					if b, err := io.ReadAll(resp.Body); string(b) != "whole" || err != nil {
						t.Errorf("%q, %v", b, err)
					}
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		if n := closed.Load(); n != 0 {
			t.Errorf("%d of %d bodies were left open", n, made.Load())
		}
	})
}

// world is a server that misbehaves, on each path in another way.
func world(n *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stall", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/abort", func(w http.ResponseWriter, r *http.Request) { n.Add(1); panic(http.ErrAbortHandler) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(429)
		io.WriteString(w, `{"error":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	return mux
}

// TestViciousServersLeaveNothingBehind: over real connections, with http.Client around: redirect loops,
// Timeout, Cancel, bodies that block in either direction, and nothing is left
// behind (else the bubble does not end).
func TestViciousServersLeaveNothingBehind(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { vices(t, http2) })
		})
	}
}

func vices(t *testing.T, http2 bool) {
	var n atomic.Int64
	base, net, stop := testnet.Server(t, world(&n), http2)
	rt := must(weir.New(base, weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("8 in flight")}}))(t)
	client := &http.Client{Transport: rt, Timeout: 20 * time.Second}
	expect := func(name string, err error, want ...error) {
		t.Helper()
		for _, w := range want {
			if errors.Is(err, w) {
				return
			}
		}
		if err == nil || len(want) > 0 {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	_, err := client.Post("http://h/loop", "text/plain", strings.NewReader("again"))
	if expect("loop", err); n.Load() != 10 {
		t.Errorf("%d requests in a redirect loop, want 10", n.Load())
	}
	start := time.Now()
	_, err = client.Get("http://h/hang")
	if expect("timeout", err, context.DeadlineExceeded); time.Since(start) != 20*time.Second {
		t.Errorf("the client's timeout ended the request after %v, want 20s", time.Since(start))
	}
	cancel := make(chan struct{})
	r := get(t, "http://h/hang")
	r.Cancel = cancel //lint:ignore SA1019 old callers still set it
	time.AfterFunc(time.Second, func() { close(cancel) })
	start = time.Now()
	_, err = rt.RoundTrip(r)
	if expect("cancel", err); time.Since(start) != time.Second {
		t.Errorf("cancelled after %v: %v", time.Since(start), err)
	}
	resp, err := rt.RoundTrip(get(t, "http://h/stall"))
	if err != nil {
		t.Fatal(err)
	}
	var late *retry.TimeoutError
	if b, err := io.ReadAll(resp.Body); string(b) != "begin" || !errors.As(err, &late) {
		t.Errorf("stall: %q, %v", b, err)
	}
	resp.Body.Close()
	n.Store(0)
	_, err = rt.RoundTrip(must(http.NewRequest("POST", "http://h/abort", strings.NewReader("x")))(t))
	if expect("abort", err, io.EOF, io.ErrUnexpectedEOF, err); n.Load() != 1 || errors.Is(err, weir.ErrNotSent) {
		t.Errorf("abort: %d times, %v", n.Load(), err)
	}
	uploads(t, rt)
	busy(t, rt)
	for _, h := range rt.Stats().Throttle.Hosts {
		for _, b := range h.Budgets {
			if h.InFlight != 0 || b.Unit == "" && b.Left != 8 {
				t.Errorf("a place in flight was not given back: %+v", h)
			}
		}
	}
	stop()
	time.Sleep(time.Minute) // of the bubble: both ends say goodbye first
	synctest.Wait()
	if net.Open() != 0 {
		t.Errorf("%d connections are left, want none", net.Open())
	}
}

// uploads sends bodies that block until they are closed, and end badly.
func uploads(t *testing.T, rt http.RoundTripper) {
	for i := range 12 {
		pr, pw := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i)*time.Second)
		start := time.Now()
		resp, err := rt.RoundTrip(must(http.NewRequestWithContext(ctx, "PUT", "http://h/ok", pr))(t))
		if err == nil { // HTTP/2 may answer while the request is being sent
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Duration(1+i)*time.Second {
			t.Errorf("a blocked upload ended with %v after %v, want its deadline after %ds", err, time.Since(start), 1+i)
		}
		cancel()
		synctest.Wait()
		if _, err := pw.Write([]byte("x")); err == nil {
			t.Error("a blocked upload's body was left open")
		}
	}
	bad := errors.New("disk on fire")
	pr, pw := io.Pipe()
	pw.CloseWithError(bad)
	if resp, err := rt.RoundTrip(must(http.NewRequest("PUT", "http://h/ok", pr))(t)); err == nil {
		resp.Body.Close()
		t.Error("an upload whose body failed was answered")
	}
	if s := rt.(*weir.Transport).Circuits().State("h"); s != breaker.Closed {
		t.Errorf("callers whose bodies block have opened the circuit: %v", s)
	}
}

// busy meets a refusal whose body blocks: nobody waits for it.
func busy(t *testing.T, rt http.RoundTripper) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	start := time.Now()
	resp, err := rt.RoundTrip(get(t, "http://h/busy").WithContext(ctx))
	if err != nil || resp.StatusCode != 429 || time.Since(start) > time.Second {
		t.Errorf("%v, %v after %v: want the 429 at once", resp, err, time.Since(start))
		return
	}
	resp.Body.Close()
}
