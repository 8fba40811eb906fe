package retry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// What the package documents in figures, and how often it goes back in line for
// nothing.
const (
	cost            = 14 // of a retry or a hedge, in tokens
	earn            = 1  // by a request that succeeds at the first try
	defaultTokens   = 500
	defaultMaxDelay = 75 * time.Second
	holdBytes       = 64 << 10 // of an answer that is read before the next attempt
	maxFree         = 10       // repeats in a row that cost nothing though nothing was waited for
)

func request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	var r *http.Request
	var err error
	if body == "" {
		r, err = http.NewRequest(method, url, nil)
	} else {
		r, err = http.NewRequest(method, url, strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newTransport(t testing.TB, base http.RoundTripper, c retry.Config) *retry.Transport {
	t.Helper()
	rt, err := retry.New(base, c)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// step is one answer of a script: a status with headers and a body, or an error.
type step struct {
	status int
	header string // "Name: value", several divided by "; "
	body   io.ReadCloser
	err    error
}

// script is a base that gives its steps in turn, the last one for ever, and
// notes when it was called and with which body.
type script struct {
	steps  []step
	times  []time.Duration
	bodies []string
	start  time.Time
	reqs   []*http.Request
}

func play(steps ...step) *script { return &script{steps: steps, start: time.Now()} }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	st := s.steps[min(len(s.times), len(s.steps)-1)]
	s.times = append(s.times, time.Since(s.start))
	s.reqs = append(s.reqs, r)
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	s.bodies = append(s.bodies, string(body))
	if st.err != nil {
		return nil, st.err
	}
	h := make(http.Header)
	for _, line := range strings.Split(st.header, "; ") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return testnet.Answer(r, st.status, h, st.body), nil
}

func (s *script) calls() int { return len(s.times) }

// fixed is a Backoff of always the same delay.
func fixed(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// fakeLayer stands for the throttle or the breaker below.
type fakeLayer struct {
	base    http.RoundTripper
	layer   trip.Layer
	outlook func(*http.Request) (time.Duration, error)
	before  func(*http.Request, *trip.Trip) error
	after   func(*http.Response, *trip.Trip)
}

func (f *fakeLayer) Link() trip.Link { return trip.Below(f.base).With(f.layer) }

func (f *fakeLayer) Outlook(r *http.Request) (time.Duration, error) {
	if f.outlook == nil {
		return 0, nil
	}
	return f.outlook(r)
}

func (f *fakeLayer) RoundTrip(r *http.Request) (*http.Response, error) {
	t := trip.From(r.Context())
	t.At(f.layer)
	if f.before != nil {
		if err := f.before(r, t); err != nil {
			trip.CloseBody(r)
			return nil, err
		}
	}
	resp, err := f.base.RoundTrip(r)
	if err == nil && f.after != nil {
		f.after(resp, t)
	}
	return resp, err
}

// door is a layer above, which makes the trip.
type door struct {
	base http.RoundTripper
	set  func(*http.Request, *trip.Trip)
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	r, t, _ := trip.Begin(r, trip.Door, trip.Below(d.base).Hosts)
	d.set(r, t)
	resp, err := d.base.RoundTrip(r)
	return resp, t.End(err)
}

// refusal is what a throttle or breaker refuses with.
type refusal struct{ by notsent.By }

func (r *refusal) Error() string         { return "refused in a test" }
func (r *refusal) RefusedBy() notsent.By { return r.by }

// text reads a response to its end and closes it.
func text(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	resp.Body.Close()
	return string(b)
}

// bubble runs f in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

var errReset = errors.New("connection reset by peer")

var dialError = net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func background() context.Context { return context.Background() }

// hostIn is what st says of a host; zero: nothing.
func hostIn(st retry.Stats, name string) retry.HostStats {
	for _, h := range st.Hosts {
		if h.Host == name {
			return h
		}
	}
	return retry.HostStats{}
}

// requestOf is a request of a kind: a method, which begins with "keyed " if the
// request has an idempotency key. All but a GET have a body.
func requestOf(t testing.TB, kind string) *http.Request {
	t.Helper()
	method, keyed := strings.CutPrefix(kind, "keyed ")
	body := "body"
	if method == "GET" {
		body = ""
	}
	r := request(t, method, "http://a.example/", body)
	if keyed {
		r.Header.Set("Idempotency-Key", "k")
	}
	return r
}

// get sends a request of a kind and returns the status, 0 for an error.
func get(t testing.TB, rt http.RoundTripper, kind string) (int, error) {
	resp, err := rt.RoundTrip(requestOf(t, kind))
	if err != nil {
		return 0, err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, nil
}

// always sends r to a base where each attempt ends like end, and returns how often it
// was sent, the status, 0 for an error, and the error.
func always(t *testing.T, end step, c retry.Config, r *http.Request) (attempts, status int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := play(end)
		var resp *http.Response
		resp, err = newTransport(t, s, c).RoundTrip(r)
		if (resp == nil) == (err == nil) {
			t.Errorf("got response %v and error %v", resp, err)
		}
		if attempts = s.calls(); resp != nil {
			status = resp.StatusCode
			resp.Body.Close()
		}
	})
	return attempts, status, err
}
