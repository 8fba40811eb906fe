package chaintest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func bodyRules() []rule {
	return []rule{
		{name: "no body stays no body", check: noBody},
		{name: "length and GetBody are kept", check: lengthKept},
		{name: "the first attempt has the original body", check: originalFirst},
		{name: "a body of a gigabyte is not buffered", check: notBuffered},
		{name: "a request body closes on every exit", check: bodyCloses},
		{name: "GetBody is called once per retry", check: getBodyPerRetry, layers: looping},
		{name: "an error of GetBody ends the request with the answer in hand", check: getBodyFails, layers: looping},
		{name: "a body without GetBody that was touched is sent once", check: touchedBody, layers: looping},
		{name: "a body without GetBody that was not touched is sent again", check: untouchedBody, layers: looping},
		{name: "discarded answers are closed", check: discardedClosed, layers: looping},
		{name: "a huge discarded answer is not read to its end", check: hugeDiscarded, layers: looping},
		{name: "a trickling discarded answer holds nothing up", check: trickleDiscarded, layers: looping},
	}
}

func noBody(t *testing.T, l layer) {
	for name, body := range map[string]io.ReadCloser{"nil": nil, "NoBody": http.NoBody} {
		rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if r.Body != body {
				t.Errorf("%s became %T: it would be sent chunked", name, r.Body)
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}))
		r := get(t, "http://h/")
		r.Method, r.Body = "POST", body
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func lengthKept(t *testing.T, l layer) {
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if r.ContentLength != 3 || r.GetBody == nil {
			t.Errorf("length %d, GetBody %v: the base cannot replay by itself", r.ContentLength, r.GetBody != nil)
		}
		return stub(r)
	}))
	for _, plain := range []bool{true, false} {
		r := must(http.NewRequest("PUT", "http://h/", strings.NewReader("abc")))(t)
		if !plain { // layers may watch what is not known to be memory
			r.Body = testnet.NewBody("abc")
		}
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func originalFirst(t *testing.T, l layer) {
	got := ""
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
		return stub(r)
	}))
	r := must(http.NewRequest("PUT", "http://h/", strings.NewReader("wrapped by somebody")))(t)
	r.GetBody = func() (io.ReadCloser, error) {
		t.Error("GetBody was called for the first attempt")
		return io.NopCloser(strings.NewReader("plain")), nil
	}
	resp, err := rt.RoundTrip(r)
	if err != nil || got != "wrapped by somebody" {
		t.Fatalf("%v; the base read %q", err, got)
	}
	resp.Body.Close()
}

// zeros is an endless body that knows how far ahead of its reader it was read.
type zeros struct{ read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	z.read += int64(len(p))
	return len(p), nil
}

func notBuffered(t *testing.T, l layer) {
	source := new(zeros)
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if source.read != 0 {
			t.Errorf("%d bytes were read before the base asked for one", source.read)
		}
		io.CopyN(io.Discard, r.Body, 1<<20)
		r.Body.Close()
		return testnet.Answer(&http.Request{}, 200, nil, nil), nil
	}))
	r := must(http.NewRequest("POST", "http://h/", io.NopCloser(io.LimitReader(source, 1<<30))))(t)
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if source.read > 2<<20 {
		t.Errorf("%d bytes were read, the base took 1 MiB", source.read)
	}
}

func bodyCloses(t *testing.T, l layer) {
	bases := map[string]testnet.Func{
		"answer": stub,
		"early answer, body closed later": func(r *http.Request) (*http.Response, error) {
			time.AfterFunc(time.Second, func() { r.Body.Close() })
			return testnet.Answer(&http.Request{}, 413, nil, nil), nil
		},
		"error": func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return nil, errors.New("failed")
		},
	}
	for name, base := range bases {
		body := testnet.NewBody("x")
		resp, err := l.wrap(t, base).RoundTrip(must(http.NewRequest("POST", "http://h/", body))(t))
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(time.Minute)
		if body.Closes() == 0 {
			t.Errorf("%s: the request's body was left open", name)
		}
	}
}

func getBodyPerRetry(t *testing.T, l layer) {
	var sent []string
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		sent = append(sent, string(b))
		if len(sent) < 3 {
			return testnet.Answer(r, 502, nil, testnet.NewBody("bad")), nil
		}
		return stub(r)
	}))
	r := must(http.NewRequest("PUT", "http://h/", strings.NewReader("abc")))(t)
	calls, plain := 0, r.GetBody
	var copies []*testnet.Body
	r.GetBody = func() (io.ReadCloser, error) {
		calls++
		b, err := plain()
		copies = append(copies, testnet.BodyOf(b))
		return copies[len(copies)-1], err
	}
	resp, err := rt.RoundTrip(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if calls != 2 || strings.Join(sent, ",") != "abc,abc,abc" {
		t.Errorf("GetBody called %d times, want 2; sent %v", calls, sent)
	}
	for i, b := range copies {
		if b.Closes() == 0 {
			t.Errorf("body %d was left open", i)
		}
	}
}

func getBodyFails(t *testing.T, l layer) {
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 502, nil, testnet.NewBody("bad")), nil
	}))
	r := must(http.NewRequest("PUT", "http://h/", strings.NewReader("abc")))(t)
	gone := errors.New("the file is gone")
	r.GetBody = func() (io.ReadCloser, error) { return nil, gone }
	resp, err := rt.RoundTrip(r)
	switch {
	case err != nil && !errors.Is(err, gone):
		t.Errorf("%v; want GetBody's error or the answer in hand", err)
	case err == nil:
		if b, rerr := io.ReadAll(resp.Body); resp.StatusCode != 502 || string(b) != "bad" || rerr != nil {
			t.Errorf("%d %q %v", resp.StatusCode, b, rerr)
		}
		resp.Body.Close()
	}
}

func touchedBody(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		n++
		return testnet.Answer(r, 502, nil, testnet.NewBody("bad")), nil
	}))
	body := testnet.NewBody("stream")
	resp, err := rt.RoundTrip(must(http.NewRequest("PUT", "http://h/", body))(t))
	if err != nil || resp.StatusCode != 502 || n != 1 {
		t.Fatalf("%v, %v after %d attempts; want the 502 after one", resp, err, n)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "bad" {
		t.Errorf("body %q", b)
	}
	resp.Body.Close()
	if body.Closes() == 0 {
		t.Error("the body was left open")
	}
}

func untouchedBody(t *testing.T, l layer) {
	n, got := 0, ""
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n < 3 {
			r.Body.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}
		b, _ := io.ReadAll(r.Body)
		got = string(b)
		return stub(r)
	}))
	body := testnet.NewBody("stream")
	resp, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", body))(t))
	if err != nil || got != "stream" {
		t.Fatalf("%v; sent %q after %d attempts", err, got, n)
	}
	resp.Body.Close()
	if body.Closes() == 0 {
		t.Error("the body was left open")
	}
}

// pieces is a body without GetBody.
func pieces(s string) io.Reader { return io.MultiReader(bytes.NewReader([]byte(s))) }
