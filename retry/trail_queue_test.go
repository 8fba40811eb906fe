package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// slowly lets a handler take a time.
func slowly(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { testnet.Wait(r.Context(), d) }
}

// ways to see what http.Transport reports: as it is, and from below somebody
// else's trace.
var ways = map[string]func(http.RoundTripper) http.RoundTripper{
	"bare":   func(b http.RoundTripper) http.RoundTripper { return b },
	"traced": tracing,
}

// each makes n requests at once and returns how each ended, and when.
func each(t *testing.T, rt http.RoundTripper, n int) (errs []error, took []time.Duration) {
	errs, took = make([]error, n), make([]time.Duration, n)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err == nil {
				text(t, resp)
			}
			errs[i], took[i] = err, time.Since(start)
		})
	}
	wg.Wait()
	return errs, took
}

// Waiting for one of MaxConnsPerHost is waiting in a queue, however long it
// takes: no attempt times out because others are served.
func TestQueueingForConnections(t *testing.T) {
	for name, way := range ways {
		for _, http2 := range []bool{false, true} {
			for _, single := range []bool{false, true} { // then each has a connection of its own dialled
				if single && http2 { // net/http shares them all the same, and waits between its own attempts
					continue
				}
				bubble(t, fmt.Sprintf("%s, http2=%v, single=%v", name, http2, single), func(t *testing.T) {
					base, _, stop := testnet.Server(t, slowly(time.Second), http2)
					base.MaxConnsPerHost, base.DisableKeepAlives = 2, single
					rt := newTransport(t, way(base), retry.Config{AttemptTimeout: 3 * time.Second, MaxAttempts: 1})
					errs, took := each(t, rt, 40)
					for i, err := range errs {
						if err != nil {
							t.Errorf("after %v: %v", took[i], err)
						}
					}
					stop()
				})
			}
		}
	}
}

// An attempt waits for those that hold all connections as long as they do, and
// then has its whole time.
func TestQueueingBehindStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" { // a stream
				w.(http.Flusher).Flush()
				testnet.Wait(r.Context(), time.Hour)
				return
			}
			testnet.Wait(r.Context(), 2*time.Second)
		}), false)
		base.MaxConnsPerHost = 1
		rt := newTransport(t, base, retry.Config{AttemptTimeout: 3 * time.Second, StallTimeout: -1, MaxAttempts: 1})
		stream, err := rt.RoundTrip(request(t, "POST", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, stream.Body)
		if errs, took := each(t, rt, 1); errs[0] != nil || took[0] != time.Hour+2*time.Second {
			t.Errorf("%v after %v", errs[0], took[0])
		}
		stop()
	})
}

// reporting is a base that reports of connections without having any.
type reporting struct {
	asks, gets bool
	holds      time.Duration // before it answers; negative: until the attempt ends
}

func (b reporting) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	if b.asks {
		trace.GetConn("")
	}
	if b.gets {
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
	}
	if b.holds < 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := testnet.Wait(r.Context(), b.holds); err != nil {
		return nil, err
	}
	return testnet.Answer(r, 200, nil, nil), nil
}

// Others are served if they have connections, or got or gave back some since it
// was asked last: who is next in line may not know yet that one was given back. As
// long as they are, an attempt that waits for a connection begins anew.
func TestServed(t *testing.T) {
	const limit = 10 * time.Second
	type other struct{ from, to time.Duration } // has a connection
	for _, tt := range []struct {
		name   string
		others []other
		want   time.Duration // that the attempt waits; it begins at 1 s
	}{
		{"nobody else", nil, limit},
		{"one who left before", []other{{0, 500 * time.Millisecond}}, limit},
		{"one who leaves", []other{{0, 2 * time.Second}}, 2 * limit},
		{"one who comes and leaves", []other{{2 * time.Second, 3 * time.Second}}, 2 * limit},
		{"two who do", []other{{2 * time.Second, 3 * time.Second}, {4 * time.Second, 5 * time.Second}}, 2 * limit},
		{"one who has it for long", []other{{2 * time.Second, 25 * time.Second}}, 4 * limit},
		{"one who has it when it is asked, and then another", []other{{0, 12 * time.Second}, {23 * time.Second, 24 * time.Second}}, 4 * limit},
		{"one who comes too late", []other{{12 * time.Second, time.Minute}}, limit},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			base := func(r *http.Request) (*http.Response, error) {
				if d, err := time.ParseDuration(r.URL.Query().Get("holds")); err == nil {
					return reporting{asks: true, gets: true, holds: d}.RoundTrip(r)
				}
				return reporting{asks: true, holds: -1}.RoundTrip(r)
			}
			w := newTransport(t, testnet.Func(base), retry.Config{MaxAttempts: 1, AttemptTimeout: limit})
			var wg sync.WaitGroup
			for _, o := range tt.others {
				wg.Go(func() {
					time.Sleep(o.from)
					r := request(t, "GET", fmt.Sprint("http://a.example/?holds=", o.to-o.from), "")
					if _, err := w.RoundTrip(r.WithContext(retry.With(r.Context(), retry.Override{AttemptTimeout: time.Hour}))); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Second)
			start := time.Now()
			_, err := w.RoundTrip(request(t, "GET", "http://a.example/", ""))
			var late *retry.TimeoutError
			if took := time.Since(start); !errors.As(err, &late) || took != tt.want {
				t.Errorf("%v after %v, want %v", err, took, tt.want)
			}
			wg.Wait()
		})
	}
}

// A caller who leaves the queue for a connection was not on the wire: nothing
// was sent, and it is nobody's failure. One that was served was there only since
// it had a connection.
func TestQueuedIsNotOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, slowly(10*time.Second), false)
		base.MaxConnsPerHost = 1
		w := retry.Wire(base, retry.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { each(t, w, 1) })
		synctest.Wait()
		for _, tt := range []struct {
			patience time.Duration
			stage    trip.Stage
			sent     bool
			onWire   time.Duration // negative: never
		}{
			{5 * time.Second, trip.Queued, false, -1},
			{7 * time.Second, trip.Answering, true, 5 * time.Second},
		} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(background(), tt.patience)
			r, tr, _ := trip.Begin(request(t, "GET", "http://a.example/", "").WithContext(ctx), trip.Retry, w.(trip.Linked).Link().Hosts)
			tr.At(trip.Retry)
			_, err := w.RoundTrip(r)
			onWire := time.Duration(-1)
			if !tr.OnWire().IsZero() {
				onWire = tr.OnWire().Sub(start)
			}
			if err == nil || tr.Stage != tt.stage || tr.Sent() != tt.sent || onWire != tt.onWire || tr.Cause() != trip.CallerDone {
				t.Errorf("%v: stage %v, sent %v, on the wire at %v", err, tr.Stage, tr.Sent(), onWire)
			}
			if err := tr.End(err); errors.Is(err, notsent.Err) == tt.sent {
				t.Errorf("%v, not sent: %v", err, !tt.sent)
			}
			cancel()
		}
		wg.Wait()
		stop()
	})
}

// tracing is somebody's layer below that has a trace of its own.
func tracing(base http.RoundTripper) http.RoundTripper {
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		trace := &httptrace.ClientTrace{ConnectStart: func(string, string) {}}
		return base.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	})
}
