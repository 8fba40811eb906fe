package retry_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

func faults() []fault {
	twice, once, none := result{200, 2, 2}, result{200, 1, 1}, result{0, 0, 0}
	return []fault{
		{name: "refuses", onDial: true, safe: once, unsafe: once},
		{name: "resets before the request is read", accept: testnet.Reset, safe: once, unsafe: none, racy: true},
		{name: "closes before the request is read", accept: func(c net.Conn) { c.Close() }, safe: once, unsafe: none, racy: true},
		{name: "resets after the header is read", answer: says(false, "", testnet.Reset), safe: result{200, 2, 1}, unsafe: result{0, 1, 0}},
		{name: "resets after the request is processed", answer: says(true, "", testnet.Reset), safe: twice, unsafe: result{0, 1, 1}},
		{name: "half-closes after the request is processed", answer: says(true, "", func(c net.Conn) { testnet.CloseWrite(c); stall(c) }), safe: twice, unsafe: result{0, 1, 1}},
		{name: "stalls before the headers", answer: says(true, "", stall), safe: twice, unsafe: result{0, 1, 1}},
		{name: "stalls in the headers", answer: says(true, "HTTP/1.1 200 OK\r\nContent-", stall), safe: twice, unsafe: result{0, 1, 1}},
		{name: "breaks in the headers", answer: says(true, "HTTP/1.1 200 OK\r\nContent-", nil), safe: twice, unsafe: result{0, 1, 1}},
		{name: "answers nonsense", answer: says(true, "HTTP/1.1 banana\r\n\r\n", nil), safe: twice, unsafe: result{0, 1, 1}},
		{name: "500", answer: says(true, answer("500 Internal Server Error"), nil), safe: twice, unsafe: result{500, 1, 1}},
		{name: "502", answer: says(true, answer("502 Bad Gateway"), nil), safe: twice, unsafe: result{502, 1, 1}},
		{name: "408", answer: says(false, answer("408 Request Timeout"), nil), safe: result{200, 2, 1}, unsafe: result{408, 1, 0}},
		{name: "421", answer: says(false, answer("421 Misdirected Request"), nil), safe: result{200, 2, 1}, unsafe: result{200, 2, 1}},
		{name: "425", answer: says(false, answer("425 Too Early"), nil), safe: result{200, 2, 1}, unsafe: result{200, 2, 1}},
		{name: "429", answer: says(false, answer("429 Too Many Requests"), nil), safe: result{200, 2, 1}, unsafe: result{200, 2, 1}},
		{name: "503", answer: says(true, answer("503 Service Unavailable"), nil), safe: twice, unsafe: result{503, 1, 1}},
		{name: "503 that trickles", answer: says(true, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nso", stall), safe: twice, unsafe: result{503, 1, 1}},
		{name: "503 that is cut short", answer: says(true, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nso", nil), safe: twice, unsafe: result{503, 1, 1}},
		{name: "truncated body", answer: says(true, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nso", nil), safe: result{200, 1, 1}, unsafe: result{200, 1, 1}},
	}
}

// For each fault, how often the server really received and processed the
// request: what is not idempotent is never processed twice.
func TestNoFaultProcessesAPOSTTwice(t *testing.T) {
	for _, f := range faults() {
		for _, kind := range []string{"GET", "PUT", "keyed POST", "POST"} {
			bubble(t, f.name+", "+kind, func(t *testing.T) {
				s := &faultServer{n: testnet.New(), fault: f, faulty: 1}
				s.wg.Go(s.run)
				base := &http.Transport{DialContext: s.n.DialContext}
				if f.onDial {
					s.n.Refuse.Store(true)
					time.AfterFunc(time.Second, func() { s.n.Refuse.Store(false) })
				}
				rt := newTransport(t, base, retry.Config{AttemptTimeout: 3 * time.Second, Backoff: fixed(2 * time.Second)})
				want := f.safe
				if kind == "POST" {
					want = f.unsafe
				}
				status, err := get(t, rt, kind)
				got := result{status, s.received, s.processed}
				if got != want && !(kind == "POST" && f.racy && got == f.safe) {
					t.Errorf("got %+v (%v), want %+v", got, err, want)
				}
				if kind == "POST" && s.processed > 1 {
					t.Error("a POST was processed twice")
				}
				base.CloseIdleConnections()
				s.n.Close()
				s.wg.Wait()
				synctest.Wait()
				if open := s.n.Open(); open != 0 {
					t.Errorf("%d connections are left", open)
				}
			})
		}
	}
}

// A truncated body is an error for its reader, and is not retried: the caller
// may have used what he read.
func TestTruncatedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &faultServer{n: testnet.New(), faulty: 1, fault: fault{answer: says(true, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nso", nil)}}
		s.wg.Go(s.run)
		rt := newTransport(t, &http.Transport{DialContext: s.n.DialContext}, retry.Config{})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != io.ErrUnexpectedEOF || string(b) != "so" {
			t.Errorf("got %q, %v", b, err)
		}
		s.n.Close()
		s.wg.Wait()
		synctest.Wait()
	})
}

// A connection that the server closed while it was idle looks, for a POST,
// like one that broke after the POST was read: it is not sent again.
func TestStaleConnection(t *testing.T) {
	for kind, want := range map[string]result{"GET": {200, 3, 3}, "POST": {0, 2, 2}, "keyed POST": {200, 3, 3}} {
		bubble(t, kind, func(t *testing.T) {
			s := &faultServer{n: testnet.New(), faulty: 0}
			s.wg.Go(s.run)
			rt := newTransport(t, &http.Transport{DialContext: s.n.DialContext}, retry.Config{})
			if status, err := get(t, rt, "GET"); status != 200 {
				t.Fatal(err)
			}
			s.fault, s.faulty = fault{answer: says(true, "", nil)}, 1
			status, err := get(t, rt, kind)
			if status != want.status || s.received != want.received || s.processed != want.processed {
				t.Errorf("got status %d (%v), received %d, processed %d; want %+v", status, err, s.received, s.processed, want)
			}
			rt.CloseIdleConnections()
			s.n.Close()
			s.wg.Wait()
			synctest.Wait()
		})
	}
}

// An early 503 while the body is being uploaded: the next attempt sends it
// whole, from its beginning.
func TestEarlyAnswer(t *testing.T) {
	const size = 1 << 20
	for _, kind := range []string{"GetBody", "kept", "one-shot"} {
		bubble(t, kind, func(t *testing.T) {
			s := &faultServer{n: testnet.New(), faulty: 2, fault: fault{answer: early}}
			s.wg.Go(s.run)
			base := &http.Transport{DialContext: s.n.DialContext}
			rt := newTransport(t, base, retry.Config{BufferBody: map[string]int64{"kept": size}[kind], Backoff: fixed(time.Second)})
			r := request(t, "PUT", "http://a.example/", strings.Repeat("0123456789abcdef", size/16))
			if kind != "GetBody" {
				r.GetBody = nil
			}
			resp, err := rt.RoundTrip(r)
			want := result{200, 3, 1}
			if kind == "one-shot" {
				want = result{503, 1, 0}
			}
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := (result{resp.StatusCode, s.received, s.processed}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			base.CloseIdleConnections()
			s.n.Close()
			s.wg.Wait()
			synctest.Wait()
			if open := s.n.Open(); open != 0 {
				t.Errorf("%d connections are left", open)
			}
		})
	}
}

// A server that keeps failing gets as many attempts as its host's allowance
// pays for, however many ask.
func TestOutageIsNotAmplified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			calls++
			mu.Unlock()
			return testnet.Answer(r, 503, nil, nil), nil
		})
		rt := newTransport(t, base, retry.Config{})
		const requests = 1000
		start := time.Now()
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			})
		}
		wg.Wait()
		most := requests + (500+3*time.Since(start).Seconds())/cost
		if float64(calls) > most || calls < requests+35 {
			t.Errorf("%d requests made %d calls, want at most %.0f", requests, calls, most)
		}
		st := rt.Stats()
		if st.Attempts != int64(calls) || st.Retries["unavailable"] != int64(calls-requests) || fmt.Sprint(hostIn(st, "a.example").Retries) != fmt.Sprint(st.Retries) {
			t.Errorf("stats %+v for %d calls", st, calls)
		}
	})
}
