package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// hasConnection reports whether an attempt has a connection to a host.
func hasConnection(table *hosts.Table, name string) bool {
	e := table.Find(name)
	defer e.Release()
	o := e.Value.Occupant(hosts.Wire)
	return o != nil && !o.Idle(time.Now())
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

// An attempt goes on as long as interim answers come. Its time is counted from the last.
func TestInterimAnswersGiveMoreTime(t *testing.T) {
	for _, silent := range []bool{false, true} {
		over(t, func(w http.ResponseWriter, r *http.Request) {
			for range 18 {
				time.Sleep(10 * time.Second)
				w.WriteHeader(http.StatusProcessing)
			}
			if silent {
				quietly(r)
			}
		}, retry.Config{MaxAttempts: 1}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
			start := time.Now()
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			want := 3 * time.Minute
			if silent {
				want += 30 * time.Second
			}
			var late *retry.TimeoutError
			if took := time.Since(start); took != want || errors.As(err, &late) != silent || (err == nil) == silent {
				t.Fatalf("silent in the end: %t: %v after %v, want %v", silent, err, took, want)
			}
			if err == nil {
				resp.Body.Close()
			}
		})
	}
}

// A server that sends interim answers without end does not keep an attempt for ever.
func TestInterimAnswersAreBounded(t *testing.T) {
	over(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-time.After(time.Second):
				w.WriteHeader(http.StatusEarlyHints)
			case <-r.Context().Done():
				return
			}
		}
	}, retry.Config{MaxAttempts: 1}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		start := time.Now()
		_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "too many interim answers") || took > 3*time.Hour {
			t.Errorf("%v after %v", err, took)
		}
	})
}
