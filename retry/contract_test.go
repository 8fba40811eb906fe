package retry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/plain"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// Waiting below does not count against AttemptTimeout.
func TestQueueingIsNotSlowness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := &fakeLayer{base: retry.Wire(play(step{status: 200}), retry.Config{}), layer: trip.Throttle,
			before: func(*http.Request, *trip.Trip) error { time.Sleep(time.Hour); return nil }}
		resp, err := newTransport(t, layer, retry.Config{AttemptTimeout: time.Second}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("got %v, %v", resp, err)
		}
	})
}

// New puts a Wire under what it wraps if there is none below yet. What waits above
// a Wire has no AttemptTimeout, what is below has one.
func TestWireStandsOnce(t *testing.T) {
	const limit = time.Second
	slow := testnet.Func(func(r *http.Request) (*http.Response, error) {
		if err := testnet.Wait(r.Context(), time.Minute); err != nil {
			return nil, err
		}
		return testnet.Answer(r, 200, nil, nil), nil
	})
	queue := func(base http.RoundTripper) http.RoundTripper {
		return &fakeLayer{base: base, layer: trip.Throttle, before: func(r *http.Request, _ *trip.Trip) error {
			return testnet.Wait(r.Context(), time.Minute)
		}}
	}
	quick := play(step{status: 200})
	for _, tt := range []struct {
		name string
		base http.RoundTripper
		cut  bool // after AttemptTimeout
	}{
		{"no Wire", slow, true},
		{"a Wire", retry.Wire(slow, retry.Config{}), true},
		{"a queue above a Wire", queue(retry.Wire(quick, retry.Config{})), false},
		{"a slow base below both", queue(retry.Wire(slow, retry.Config{})), true},
		{"a queue without a Wire", queue(quick), true},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			rt := newTransport(t, tt.base, retry.Config{MaxAttempts: 1, AttemptTimeout: limit})
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			var late *retry.TimeoutError
			if cut := errors.As(err, &late); cut != tt.cut || !cut && err != nil || cut && late.Limit != limit {
				t.Errorf("got %v, want a timeout: %v", err, tt.cut)
			}
			k := rt.Link()
			if !k.Has[trip.Wire] || !k.Has[trip.Retry] || k.Has[trip.Door] || k.Hosts == nil {
				t.Errorf("link %+v", k)
			}
		})
	}
}

// A base of nil is http.DefaultTransport, for New and for Wire.
func TestNilIsTheDefaultTransport(t *testing.T) {
	was := http.DefaultTransport
	defer func() { http.DefaultTransport = was }()
	s := play(step{status: 200})
	http.DefaultTransport = s
	for i, rt := range []http.RoundTripper{newTransport(t, nil, retry.Config{}), retry.Wire(nil, retry.Config{})} {
		if resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err != nil || resp.StatusCode != 200 || s.calls() != i+1 {
			t.Errorf("got %v, %v after %d calls", resp, err, s.calls())
		}
	}
}

// A bad Config is refused with the field's name.
func TestNewRefuses(t *testing.T) {
	for field, c := range map[string]retry.Config{
		"MaxAttempts -1":      {MaxAttempts: -1},
		"Backoff and Delay":   {Backoff: fixed(0), Delay: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 }},
		"MaxDelay -1s":        {MaxDelay: -time.Second},
		"BufferBody -1":       {BufferBody: -1},
		"Allowance.Tokens -1": {Allowance: retry.Allowance{Tokens: -1}},
		"Allowance.Tokens 13": {Allowance: retry.Allowance{Tokens: 13}},
		"Hedge.After -1s":     {Hedge: retry.Hedge{After: -time.Second}},
		"Hedge.Quantile 1:":   {Hedge: retry.Hedge{Quantile: 1}},
		"Hedge.Quantile -0.5": {Hedge: retry.Hedge{Quantile: -0.5}},
	} {
		if _, err := retry.New(nil, c); err == nil || !strings.HasPrefix(err.Error(), "retry: "+field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// The same response comes back, and the request is as it was, header map
// included.
func TestRequestAndResponseStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(t, "POST", "http://a.example/path?q=1", "body")
		r.Header.Set("X", "1")
		r.Host, r.Trailer = "other.example", http.Header{"X-Sum": nil}
		before, header := *r, reflect.ValueOf(r.Header).Pointer()
		var sent *http.Response
		base := testnet.Func(func(q *http.Request) (*http.Response, error) {
			if q.Host != "other.example" || q.ContentLength != 4 || reflect.ValueOf(q.Trailer).Pointer() != reflect.ValueOf(r.Trailer).Pointer() {
				t.Errorf("the base got %+v", q)
			}
			sent = testnet.Answer(q, 429, nil, testnet.NewBody("x"))
			return sent, nil
		})
		resp, err := newTransport(t, base, retry.Config{MaxAttempts: 2, IdempotencyKey: retry.RandomKey}).RoundTrip(r)
		if err != nil || resp != sent || resp.Request == nil {
			t.Errorf("got %v, %v", resp, err)
		}
		if r.Host != before.Host || r.Body != before.Body || reflect.ValueOf(r.Header).Pointer() != header || len(r.Header) != 1 {
			t.Errorf("the request was changed: %+v", r)
		}
	})
}

// What breaks the contract below does not break it above.
func TestABrokenBaseDoesNotBreakTheContractAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("x")
		for name, f := range map[string]testnet.Func{
			"nothing": func(r *http.Request) (*http.Response, error) { return nil, nil },
			"both": func(r *http.Request) (*http.Response, error) {
				return testnet.Answer(r, 200, nil, body), errReset
			},
		} {
			for _, c := range []retry.Config{{}, {AttemptTimeout: -1, StallTimeout: -1}} {
				resp, err := newTransport(t, f, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
				if resp != nil || err == nil {
					t.Errorf("%s: got %v, %v", name, resp, err)
				}
			}
		}
		if body.Closes() == 0 {
			t.Error("the response next to an error was not closed")
		}
		noBody := testnet.Func(func(r *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 503}, nil })
		resp, err := newTransport(t, noBody, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.Body == nil {
			t.Errorf("got %v, %v", resp, err)
		}
	})
}

// CloseIdleConnections reaches the base.
func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	b := &idler{}
	(&http.Client{Transport: newTransport(t, b, retry.Config{})}).CloseIdleConnections()
	if b.closed != 1 {
		t.Errorf("called %d times", b.closed)
	}
}

type idler struct{ closed int }

func (*idler) RoundTrip(*http.Request) (*http.Response, error) { return nil, errReset }
func (b *idler) CloseIdleConnections()                         { b.closed++ }

// Redirects and cookies stay the client's business.
func TestUnderClient(t *testing.T) {
	var mu sync.Mutex
	failed := make(map[string]bool)
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		first := !failed[r.URL.Path]
		failed[r.URL.Path] = true
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		switch {
		case first:
			w.WriteHeader(503)
		case r.URL.Path == "/":
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
			http.Redirect(w, r, "/next", http.StatusTemporaryRedirect)
		default:
			c, _ := r.Cookie("c")
			io.WriteString(w, c.String()+string(body))
		}
	}
	over(t, h, retry.Config{}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		mu.Lock()
		clear(failed)
		mu.Unlock()
		jar, _ := cookiejar.New(nil)
		client := &http.Client{Transport: rt, Jar: jar, Timeout: time.Minute}
		r := request(t, "PUT", "http://a.example/", "body")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); got != "c=1body" {
			t.Errorf("got %q", got)
		}
		if st := rt.Stats(); st.Attempts != 4 || st.Retries["unavailable"] != 2 {
			t.Errorf("stats %+v", st)
		}
	})
}

// It works under a ReverseProxy, uploads included.
func TestUnderReverseProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503}, step{status: 200, body: testnet.NewBody("ok")})
		target, _ := url.Parse("http://a.example/")
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = newTransport(t, s, retry.Config{BufferBody: 100})
		proxy.ModifyResponse = func(r *http.Response) error {
			r.ContentLength = 2 // or it is flushed by a timer that is due at once: see testnet.Wait
			return nil
		}
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, httptest.NewRequest("PUT", "http://front.example/x", io.MultiReader(strings.NewReader("body"))))
		if w.Code != 200 || w.Body.String() != "ok" || !reflect.DeepEqual(s.bodies, []string{"body", "body"}) {
			t.Errorf("got %d %q, sent %q", w.Code, w.Body, s.bodies)
		}
	})
}

// A refused stream is repeated by net/http with a file's body as well.
func TestRefusedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &streamServer{n: testnet.New(), end: func(c frames, stream uint32, nth int) bool {
			if nth < 3 {
				c.reset(stream, 7)
			} else {
				c.ok(stream)
			}
			return true
		}}
		s.wg.Go(s.run)
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		base := &http.Transport{DialContext: s.n.DialContext, Protocols: &protocols}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, "POST", "http://a.example/", "")
		r.Body, r.ContentLength = f, 10
		resp, err := newTransport(t, base, retry.Config{MaxAttempts: 2}).RoundTrip(r)
		if err != nil || resp.StatusCode != 200 || s.ended != 3 {
			t.Errorf("got %v, %v after %d", resp, err, s.ended)
		}
		synctest.Wait()
		base.CloseIdleConnections()
		s.n.Close()
		s.wg.Wait()
	})
}

// The text of an Error, to the letter.
func TestErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leak := &url.Error{Op: "Get", URL: "http://a.example/?token=secret", Err: errors.New("broken")}
		s := play(step{status: 503, body: testnet.BodyOf(failing{})}, step{err: leak}, step{err: errReset})
		_, err := newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/?token=secret", ""))
		want := "retry: a.example: no response after 3 attempts (503; broken; connection reset by peer): no attempts left"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		layer := &fakeLayer{base: retry.Wire(play(step{err: errReset}), retry.Config{}), layer: trip.Meter,
			outlook: func(*http.Request) (time.Duration, error) { return 0, &refusal{notsent.Meter} }}
		s = play(step{err: errReset}, step{err: errReset}, step{err: leak}, step{err: leak})
		_, err = newTransport(t, s, retry.Config{MaxAttempts: 4}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		want = "retry: a.example: no response after 4 attempts (connection reset by peer, 2 times; broken, 2 times): no attempts left"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		_, err = newTransport(t, layer, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		want = "retry: a.example: no response after 1 attempt (connection reset by peer): not repeated: refused in a test"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// An Error about a URL without a host names none.
func TestErrorTextWithoutAHost(t *testing.T) {
	for want, err := range map[string]error{
		"retry: no response after 2 attempts: no attempts left": &retry.Error{Attempts: 2, Reason: retry.Exhausted},
		"retry: response body stalled for 1s":                   &retry.TimeoutError{Limit: time.Second, Body: true},
		"retry: no response headers within 1s":                  &retry.TimeoutError{Limit: time.Second},
		"retry: h: no response headers within 1s":               &retry.TimeoutError{Host: "h", Limit: time.Second},
	} {
		if err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := newTransport(t, play(step{err: errReset}, step{err: errReset}, step{err: errReset}), retry.Config{}).RoundTrip(request(t, "GET", "http://:80/", ""))
	if want := "retry: :80: no response after 3 attempts (connection reset by peer, 3 times): no attempts left"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// However long a line a server sends, an Error shows little of it.
func TestErrorTextIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := errors.New("malformed HTTP status code " + strings.Repeat("\u00e9", 1<<19))
		_, err := newTransport(t, play(step{err: long}), retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if n := len(err.Error()); n > 4*plain.Longest || !utf8.ValidString(err.Error()) || !errors.Is(err, long) {
			t.Errorf("%d bytes: %.80q", n, err)
		}
	})
}
