package chaintest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func contractRules() []rule {
	return []rule{
		{name: "the request is not modified", check: requestUnmodified},
		{name: "the same response is returned", check: sameResponse},
		{name: "never a response and an error", check: neverBoth},
		{name: "a response has a request", check: responseRequest},
		{name: "a response obtained is a response returned", check: everyStatus},
		{name: "a response's body is handed over unread", check: responseUnread},
		{name: "a response's body closes once", check: responseClosesOnce},
		{name: "CloseIdleConnections is forwarded", check: closeIdle},
		{name: "a cancelled request closes its body", check: cancelledBefore},
		{name: "a request without a URL or host is an error", check: noHost},
		{name: "an unsupported scheme is an error", check: badScheme},
		{name: "a panic in the base passes and wedges nothing", check: panics},
		{name: "Goexit in the base wedges nothing", check: goexits},
		{name: "one transport serves many goroutines", check: concurrent},
		{name: "a request made below with our context is its own", check: nested},
		{name: "the caller's context values reach the base", check: contextValues},
		{name: "the caller's error comes out of a cancelled attempt", check: cancelCause},
		{name: "a nil Header is no panic", check: nilHeader},
	}
}

func requestUnmodified(t *testing.T, l layer) {
	body := testnet.NewBody("payload")
	r := must(http.NewRequest("PUT", "http://user:pw@API.example.com:80/p?q=1#f", body))(t)
	r.ContentLength, r.Host = 7, "virtual.example"
	r.Header.Set("X-A", "1")
	r.Trailer = http.Header{"X-T": nil}
	before, ctx := *r, r.Context()
	header, address := r.Header.Clone(), *r.URL
	base := testnet.Func(func(sent *http.Request) (*http.Response, error) {
		if sent.Host != "virtual.example" || sent.ContentLength != 7 || sent.URL.String() != before.URL.String() {
			t.Errorf("the base got %s %s, length %d", sent.Host, sent.URL, sent.ContentLength)
		}
		if reflect.ValueOf(sent.Trailer).Pointer() != reflect.ValueOf(r.Trailer).Pointer() {
			t.Error("the trailer map was copied: values set at the body's end are lost")
		}
		if sent.Header.Get("X-A") != "1" {
			t.Errorf("header %v", sent.Header)
		}
		return stub(sent)
	})
	resp, err := l.wrap(t, base).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r.Context() != ctx || r.Body != before.Body || r.URL != before.URL || *r.URL != address ||
		!reflect.DeepEqual(r.Header, header) || r.ContentLength != 7 || r.Host != "virtual.example" || r.GetBody != nil {
		t.Errorf("the request was changed: %+v", r)
	}
}

func sameResponse(t *testing.T, l layer) {
	var made *http.Response
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		made, _ = stub(r)
		return made, nil
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || resp != made {
		t.Fatalf("got %p, %v; the base made %p", resp, err, made)
	}
	resp.Body.Close()
}

func neverBoth(t *testing.T, l layer) {
	failed := errors.New("failed")
	resp, err := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return nil, failed
	})).RoundTrip(get(t, "http://h/"))
	if resp != nil || !errors.Is(err, failed) {
		t.Errorf("%v, %v; want no response and the base's error", resp, err)
	}
}

func responseRequest(t *testing.T, l layer) {
	resp, err := l.wrap(t, testnet.Func(stub)).RoundTrip(get(t, "http://h/path"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Request == nil || resp.Request.URL.Path != "/path" {
		t.Errorf("response's request: %+v", resp.Request)
	}
}

func everyStatus(t *testing.T, l layer) {
	for _, status := range []int{200, 204, 301, 400, 401, 403, 404, 408, 413, 418, 421, 425, 429, 500, 501, 502, 503, 504, 511, 529, 599} {
		rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, status, nil, testnet.NewBody("why")), nil
		}))
		resp, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", io.MultiReader(strings.NewReader("once"))))(t))
		if err != nil || resp.StatusCode != status {
			t.Errorf("%d: %v, %v", status, resp, err)
			continue
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "why" || err != nil {
			t.Errorf("%d: body %q, %v", status, b, err)
		}
		resp.Body.Close()
	}
}

func responseUnread(t *testing.T, l layer) {
	body := testnet.NewBody("data")
	resp, err := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, body), nil
	})).RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatal(err)
	}
	if body.Reads() != 0 || body.Closes() != 0 {
		t.Errorf("%d reads, %d closes before the caller had it", body.Reads(), body.Closes())
	}
	if b, err := io.ReadAll(resp.Body); string(b) != "data" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	resp.Body.Close()
}

func responseClosesOnce(t *testing.T, l layer) {
	body := testnet.NewBody("data")
	resp, err := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, body), nil
	})).RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if body.Closes() != 1 {
		t.Errorf("the base's body was closed %d times, want 1", body.Closes())
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body can be read")
	}
}

type idler struct {
	testnet.Func
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func closeIdle(t *testing.T, l layer) {
	base := &idler{Func: stub}
	client := &http.Client{Transport: l.wrap(t, base)}
	client.CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("the base was asked %d times, want 1", base.closed)
	}
}

func noHost(t *testing.T, l layer) {
	rt := l.wrap(t, new(http.Transport))
	for name, u := range map[string]*url.URL{"no URL": nil, "no host": {Scheme: "http", Path: "/x"}} {
		body := testnet.NewBody("x")
		resp, err := rt.RoundTrip(&http.Request{Method: "POST", URL: u, Body: body, Header: http.Header{}})
		if resp != nil || err == nil {
			t.Errorf("%s: %v, %v; want an error", name, resp, err)
		}
		if body.Closes() == 0 {
			t.Errorf("%s: the body was left open", name)
		}
	}
}

func badScheme(t *testing.T, l layer) {
	body := testnet.NewBody("x")
	r := must(http.NewRequest("PUT", "gopher://h/", body))(t)
	start := time.Now()
	resp, err := l.wrap(t, new(http.Transport)).RoundTrip(r)
	if resp != nil || err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Errorf("%v, %v; want an error that names the scheme", resp, err)
	}
	if body.Closes() == 0 || time.Since(start) > 0 {
		t.Errorf("closed %d times, after %v: want one attempt", body.Closes(), time.Since(start))
	}
}

func concurrent(t *testing.T, l layer) {
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Millisecond)
		return stub(r)
	}))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				resp, err := rt.RoundTrip(get(t, "http://h/"))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}

func nested(t *testing.T, l layer) {
	var rt http.RoundTripper
	depth := 0
	rt = l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if depth++; depth == 1 { // like a token source that calls the same host
			resp, err := rt.RoundTrip(get(t, "http://h/token").WithContext(r.Context()))
			if err != nil {
				t.Errorf("nested: %v", err)
			} else {
				resp.Body.Close()
			}
		}
		return stub(r)
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || depth != 2 {
		t.Fatalf("%v, %v after %d calls", resp, err, depth)
	}
	resp.Body.Close()
}

type valueKey struct{}

func contextValues(t *testing.T, l layer) {
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.Context().Value(valueKey{}) != "v" {
			t.Error("the caller's value is not there")
		}
		return stub(r)
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(context.WithValue(t.Context(), valueKey{}, "v")))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func nilHeader(t *testing.T, l layer) {
	r := get(t, "http://h/")
	r.Header = nil
	resp, err := l.wrap(t, testnet.Func(stub)).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
