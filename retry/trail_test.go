package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
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

// hole dials nothing, for ever, or after a time.
type hole struct {
	n     *testnet.Net
	after time.Duration // zero: for ever
}

func (h hole) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if h.after == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	testnet.Wait(ctx, h.after)
	return h.n.DialContext(ctx, network, addr)
}

// A dial that leads nowhere ends after AttemptTimeout, for those that dial and
// for those that wait until they may, and though others have connections.
func TestDialIntoTheVoid(t *testing.T) {
	for name, way := range ways {
		for _, most := range []int{0, 2} {
			bubble(t, fmt.Sprintf("%s, MaxConnsPerHost=%d", name, most), func(t *testing.T) {
				base := &http.Transport{DialContext: hole{}.DialContext, MaxConnsPerHost: most}
				rt := newTransport(t, way(base), retry.Config{AttemptTimeout: 3 * time.Second, MaxAttempts: 1})
				errs, took := each(t, rt, 6)
				for i, err := range errs {
					var late *retry.TimeoutError
					if !errors.As(err, &late) || took[i] != 3*time.Second {
						t.Errorf("%v after %v", err, took[i])
					}
				}
				base.CloseIdleConnections() // ends the dials
			})
		}
	}
}

// void is a net.Dialer that gets nowhere.
func void() *net.Dialer {
	return &net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// So does one into the void while others have connections: it is no queueing.
func TestDialIntoTheVoidBesideOthers(t *testing.T) {
	for name, way := range ways {
		bubble(t, name, func(t *testing.T) {
			base := &http.Transport{DialContext: void().DialContext}
			dials := way(base)
			rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/has" {
					return reporting{asks: true, gets: true, holds: time.Hour}.RoundTrip(r)
				}
				return dials.RoundTrip(r)
			}), retry.Config{MaxAttempts: 1, AttemptTimeout: 2 * time.Hour})
			var wg sync.WaitGroup
			wg.Go(func() { rt.RoundTrip(request(t, "GET", "http://127.0.0.1/has", "")) })
			synctest.Wait()
			if !hasConnection(rt.Link().Hosts, "127.0.0.1") {
				t.Error("the other has no connection")
			}
			r := request(t, "GET", "http://127.0.0.1/", "")
			start := time.Now()
			ctx, cancel := context.WithTimeout(retry.With(r.Context(), retry.Override{AttemptTimeout: 3 * time.Second}), time.Hour)
			defer cancel()
			_, err := rt.RoundTrip(r.WithContext(ctx))
			if took := time.Since(start); err == nil || took != 3*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			wg.Wait()
			base.CloseIdleConnections()
		})
	}
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

// hasConnection reports whether an attempt has a connection to a host.
func hasConnection(table *hosts.Table, name string) bool {
	e := table.Find(name)
	defer e.Release()
	o := e.Value.Occupant(hosts.Wire)
	return o != nil && !o.Idle(time.Now())
}

// A connection that another attempt has left is not what an attempt dialled for
// so long: it has its whole time with it.
func TestConnectionOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, slowly(2*time.Second), false)
		rt := newTransport(t, base, retry.Config{MaxAttempts: 1, AttemptTimeout: 3 * time.Second})
		var wg sync.WaitGroup
		wg.Go(func() { each(t, rt, 1) })
		synctest.Wait()
		base.DialContext = hole{}.DialContext
		if errs, took := each(t, rt, 1); errs[0] != nil || took[0] != 4*time.Second {
			t.Errorf("%v after %v", errs[0], took[0])
		}
		wg.Wait()
		stop()
	})
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

// AttemptTimeout is for dialling and the answer together; what an attempt spends
// in the queue before it dials is not.
func TestDiallingCounts(t *testing.T) {
	for _, tt := range []struct {
		dial, answer time.Duration
		ok           bool
	}{
		{2 * time.Second, 900 * time.Millisecond, true},
		{2 * time.Second, 1100 * time.Millisecond, false},
	} {
		bubble(t, fmt.Sprintf("dialled %v, answered in %v", tt.dial, tt.answer), func(t *testing.T) {
			base, n, stop := testnet.Server(t, slowly(tt.answer), false)
			base.DialContext = hole{n, tt.dial}.DialContext
			base.MaxConnsPerHost, base.DisableKeepAlives = 1, true
			rt := newTransport(t, base, retry.Config{AttemptTimeout: 3 * time.Second, MaxAttempts: 1})
			errs, took := each(t, rt, 10)
			for i, err := range errs {
				if ok := err == nil; ok != tt.ok {
					t.Errorf("%v after %v", err, took[i])
				}
			}
			stop()
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

// What an attempt waited for when it failed.
func TestStages(t *testing.T) {
	silent := testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Read(make([]byte, 10))
		}
		<-r.Context().Done()
		trip.CloseBody(r)
		return nil, r.Context().Err()
	})
	upload := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(&endless{}), -1 }
	for _, tt := range []struct {
		name  string
		base  func(t *testing.T) http.RoundTripper
		shape func(*http.Request)
		want  trip.Stage
	}{
		{"a base that reports nothing", func(*testing.T) http.RoundTripper { return silent }, nil, trip.Answering},
		{"and takes no more of the body", func(*testing.T) http.RoundTripper { return silent }, upload, trip.Sending},
		{"a dial into the void", func(t *testing.T) http.RoundTripper {
			base := &http.Transport{DialContext: hole{}.DialContext}
			t.Cleanup(base.CloseIdleConnections)
			return base
		}, nil, trip.Dialling},
		{"a dial that is refused", func(t *testing.T) http.RoundTripper {
			n := testnet.New()
			n.Refuse.Store(true)
			return &http.Transport{DialContext: n.DialContext}
		}, nil, trip.Dialling},
		{"a server that is silent", silence, nil, trip.Answering},
		{"a server that reads nothing", silence, upload, trip.Sending},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			w := retry.Wire(tt.base(t), retry.Config{AttemptTimeout: time.Second})
			r := request(t, "PUT", "http://a.example/", "")
			if tt.shape != nil {
				tt.shape(r)
			}
			r, tr, _ := trip.Begin(r, trip.Retry, w.(trip.Linked).Link().Hosts)
			tr.At(trip.Retry)
			_, err := w.RoundTrip(r)
			if err == nil || tr.Stage != tt.want {
				t.Errorf("%v: stage %v, want %v", err, tr.Stage, tt.want)
			}
			text := map[trip.Stage]string{
				trip.Answering: "no response headers within 1s", trip.Dialling: "no connection within 1s", trip.Sending: "request body stalled for 1s",
			}[tt.want]
			var late *retry.TimeoutError
			if errors.As(err, &late) && !strings.HasSuffix(err.Error(), text) {
				t.Errorf("%q, want %q", err, text)
			}
			if tr.Next(); tr.Stage != trip.Answering {
				t.Error("the next attempt begins with what the last one was at")
			}
			tr.End(err)
		})
	}
}

// silence is a server that says nothing, and does not read bodies.
func silence(t *testing.T) http.RoundTripper {
	base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		testnet.Wait(context.Background(), time.Minute)
	}), false)
	t.Cleanup(func() { stop(); time.Sleep(time.Minute) })
	return base
}

// endless is a source that never ends and never blocks.
type endless struct{}

func (*endless) Read(b []byte) (int, error) { return len(b), nil }

// A base whose reports have gaps, or come late, neither confuses the count of
// connections nor is waited for.
func TestTrailWithGaps(t *testing.T) {
	type trace = *httptrace.ClientTrace
	got := func(x trace) { x.GotConn(httptrace.GotConnInfo{Reused: true}) }
	for name, tt := range map[string]struct {
		during, after func(x trace)
		held          bool // before the end
	}{
		"nothing":                  {},
		"a connection unasked for": {during: got},
		"asked and no connection":  {during: func(x trace) { x.GetConn("") }},
		"asked, and another one":   {during: func(x trace) { x.GetConn(""); got(x); x.GetConn(""); got(x) }, held: true},
		"two for one":              {during: func(x trace) { x.GetConn(""); got(x); got(x) }, held: true},
		"ended before":             {after: func(x trace) { x.GetConn(""); got(x) }},
	} {
		bubble(t, name, func(t *testing.T) {
			var rt *retry.Transport
			var x trace
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				x = httptrace.ContextClientTrace(r.Context())
				if tt.during != nil {
					tt.during(x)
				}
				if held := hasConnection(rt.Link().Hosts, "a.example"); held != tt.held {
					t.Errorf("a connection is held: %v, want %v", held, tt.held)
				}
				return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
			})
			rt = newTransport(t, base, retry.Config{})
			resp, err := rt.RoundTrip(request(t, "POST", "http://a.example/", "body"))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			if tt.after != nil {
				tt.after(x)
			}
			if hasConnection(rt.Link().Hosts, "a.example") {
				t.Error("a connection is left")
			}
		})
	}
}

// Nothing is left of connections that were given back, whatever became of the
// attempts that had them.
func TestLinesAreGivenBack(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/body":
			io.WriteString(w, "x")
		case "/hang":
			quietly(r)
		}
	}
	over(t, h, retry.Config{AttemptTimeout: time.Second, MaxAttempts: 2}, func(t *testing.T, rt *retry.Transport, n *testnet.Net) {
		for _, path := range []string{"/", "/cut", "/body", "/hang"} {
			if resp, err := rt.RoundTrip(request(t, "GET", "http://a.example"+path, "")); err == nil {
				if path == "/body" && !hasConnection(rt.Link().Hosts, "a.example") {
					t.Error("an attempt whose body is open has no connection")
				}
				text(t, resp)
			}
		}
		if synctest.Wait(); hasConnection(rt.Link().Hosts, "a.example") {
			t.Error("a connection is left")
		}
	})
}
