package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// over runs f against h over HTTP/1 and HTTP/2, in virtual time on a network
// in memory, and checks that no connection is left in use.
func over(t *testing.T, h http.HandlerFunc, c retry.Config, f func(t *testing.T, rt *retry.Transport, n *testnet.Net)) {
	for _, http2 := range []bool{false, true} {
		bubble(t, fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			base, n, stop := testnet.Server(t, h, http2)
			rt := newTransport(t, base, c)
			f(t, rt, n)
			rt.CloseIdleConnections()
			stop()
			synctest.Wait()
			if open := n.Open(); open != 0 {
				t.Errorf("%d connections are left", open)
			}
		})
	}
}

// quietly lets a handler block until its client has gone.
func quietly(r *http.Request) { <-r.Context().Done() }

// Headers that do not come end the attempt at the limit, on both versions,
// with our error; GET is tried again.
func TestAttemptTimeout(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls++
		n := calls
		mu.Unlock()
		if n%3 != 0 {
			quietly(r)
		}
	}
	over(t, h, retry.Config{AttemptTimeout: 2 * time.Second, Backoff: fixed(time.Second)}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		start := time.Now()
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("took %v, want two timeouts and two delays", took)
		}
	})
}

// Expect: 100-continue works as ever: the body is sent when the server asks
// for it, and an attempt that was told not to send it leaves it untouched for
// the next.
func TestExpectContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get("Expect"))
			if len(got) == 1 {
				w.Header().Set("Connection", "close")
				w.WriteHeader(503) // without having read: the client is not told to go on
				return
			}
			b, _ := io.ReadAll(r.Body)
			got = append(got, string(b))
		}), false)
		base.ExpectContinueTimeout = time.Hour
		rt := newTransport(t, base, retry.Config{})
		r := request(t, "PUT", "http://a.example/", "")
		r.Header.Set("Expect", "100-continue")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), 4
		resp, err := rt.RoundTrip(r)
		if err != nil || resp.StatusCode != 200 || strings.Join(got, ", ") != "100-continue, 100-continue, body" {
			t.Errorf("got %v, %v; the server %q", resp, err, got)
		}
		rt.CloseIdleConnections()
		stop()
	})
}

// A request body whose Read blocks does not hold the attempt beyond its time.
func TestBlockedUpload(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	over(t, h, retry.Config{AttemptTimeout: time.Second}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		for _, own := range []bool{true, false} { // with a body of ours between, and without
			pr, pw := io.Pipe()
			r := request(t, "POST", "http://a.example/", "")
			r.Body = pr
			if own {
				r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("no") }
			}
			start := time.Now()
			_, err := rt.RoundTrip(r)
			var late *retry.TimeoutError
			if !errors.As(err, &late) || time.Since(start) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
			synctest.Wait()
			if _, err := pw.Write([]byte("x")); err == nil {
				t.Error("the body is still being read")
			}
		}
	})
}

// Reading an answer to its end, by the caller or because another attempt
// follows, gives its connection back: ending its context does not break it.
func TestConnectionIsKept(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls++
		n := calls
		mu.Unlock()
		if n%2 == 1 {
			w.WriteHeader(503)
		}
		io.WriteString(w, strings.Repeat("x", 5000))
	}
	over(t, h, retry.Config{}, func(t *testing.T, rt *retry.Transport, n *testnet.Net) {
		for range 50 {
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil || len(text(t, resp)) != 5000 {
				t.Fatal(resp, err)
			}
			synctest.Wait()
		}
		if got := n.Dialed.Load(); got != 1 {
			t.Errorf("100 attempts one after the other took %d connections", got)
		}
	})
}

// Trailers arrive, those of the request and those of the response.
func TestTrailers(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Echo")
		fmt.Fprintf(w, "%s", b)
		w.Header().Set("X-Echo", r.Trailer.Get("X-Sum"))
	}
	over(t, h, retry.Config{}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		r := request(t, "PUT", "http://a.example/", "")
		r.Trailer = http.Header{"X-Sum": nil}
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("body"), atEnd(func() { r.Trailer.Set("X-Sum", "42") })))
		r.ContentLength = -1
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); got != "body" || resp.Trailer.Get("X-Echo") != "42" {
			t.Errorf("got %q with trailer %v", got, resp.Trailer)
		}
	})
}

type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }

// What Wire notes for those above: when it went, why it ended, what was sent.
func TestWireNotesWhatWasSentAndWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		n.Refuse.Store(true)
		down := &http.Transport{DialContext: n.DialContext}
		hang := testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Canceled
		})
		for _, tt := range []struct {
			name              string
			base              http.RoundTripper
			method            string
			patience          time.Duration
			cause             trip.Cause
			sent, unprocessed bool
		}{
			{"answer", play(step{status: 200}), "GET", time.Hour, trip.NoCause, true, false},
			{"dial", down, "GET", time.Hour, trip.NoCause, false, true},
			{"dial of a POST", down, "POST", time.Hour, trip.NoCause, false, true},
			{"our timeout", hang, "GET", time.Hour, trip.AttemptTimeout, true, false},
			{"the caller's", hang, "GET", time.Second, trip.CallerDone, true, false},
			{"reset", play(step{err: errReset}), "GET", time.Hour, trip.NoCause, true, false},
			{"reset of a base without traces", play(step{err: errReset}), "POST", time.Hour, trip.NoCause, true, false},
			{"refused by another chain", play(step{err: &refusal{notsent.Throttle}}), "POST", time.Hour, trip.NoCause, true, false},
			{"refused by another chain that sent nothing", play(step{err: notsent.Wrap(&refusal{notsent.Throttle})}), "POST", time.Hour, trip.NoCause, false, true},
		} {
			w := retry.Wire(tt.base, retry.Config{AttemptTimeout: 5 * time.Second})
			ctx, cancel := context.WithTimeout(background(), tt.patience)
			r, tr, _ := trip.Begin(request(t, tt.method, "http://a.example/", "").WithContext(ctx), trip.Retry, w.(trip.Linked).Link().Hosts)
			now := time.Now()
			w.RoundTrip(r)
			if tr.Cause() != tt.cause || tr.Sent() != tt.sent || tr.Unprocessed != tt.unprocessed || !tr.OnWire().Equal(now) {
				t.Errorf("%s: cause %v, sent %v, unprocessed %v", tt.name, tr.Cause(), tr.Sent(), tr.Unprocessed)
			}
			tr.End(nil)
			cancel()
		}
	})
}

// Wire alone takes its own limits, and those of With.
func TestWireAloneKeepsItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		w := retry.Wire(hang, retry.Config{AttemptTimeout: 5 * time.Second})
		for want, o := range map[time.Duration]retry.Override{5 * time.Second: {}, time.Second: {AttemptTimeout: time.Second}} {
			start := time.Now()
			_, err := w.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(retry.With(background(), o)))
			if took := time.Since(start); took != want || errors.Is(err, notsent.Err) {
				t.Errorf("got %v after %v, want %v", err, took, want)
			}
		}
	})
}
