package chaintest

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func httpRules(h2 bool) []rule {
	over := func(f func(t *testing.T, l layer, h2 bool)) func(*testing.T, layer) {
		return func(t *testing.T, l layer) { f(t, l, h2) }
	}
	timed := []string{"chain", "retry", "wire"}
	rules := []rule{
		{name: "request trailers set at the body's end arrive", check: over(requestTrailers)},
		{name: "response trailers arrive", check: over(responseTrailers)},
		{name: "lengths arrive as they were", check: over(lengths)},
		{name: "a body that flows outlasts the attempt timeout", check: over(slowBody)},
		{name: "an attempt without headers ends", check: over(hungHeaders), layers: timed},
		{name: "a download that stalls ends", check: over(stalledBody), layers: timed},
		{name: "an event stream may be quiet", check: over(quietStream)},
		{name: "a blocked request body ends with the attempt", check: over(blockedUpload), layers: timed},
		{name: "an early answer while uploading", check: over(earlyAnswer)},
		{name: "cancelling ends a body read", check: over(cancelledRead)},
		{name: "under a reverse proxy", check: over(reverseProxy)},
		{name: "redirects and cookies stay the client's", check: over(redirects)},
		{name: "gzip is undone", check: over(zipped)},
		{name: "no connection is left behind", check: over(noneLeft)},
	}
	if !h2 {
		rules = append(rules, rule{name: "a connection that was switched is writable", check: upgrade})
	}
	return rules
}

// serve runs h on a network in memory and wraps the way to it.
func serve(t *testing.T, l layer, h2 bool, h http.HandlerFunc) (http.RoundTripper, *testnet.Net) {
	base, n, stop := testnet.Server(t, h, h2)
	t.Cleanup(func() {
		stop()
		time.Sleep(time.Second) // virtual: a server lingers before it closes a connection
	})
	return l.wrap(t, base), n
}

func requestTrailers(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, r.Trailer.Get("X-Sum"))
	})
	trailer := http.Header{"X-Sum": nil}
	r := must(http.NewRequest("PUT", "http://h/", io.MultiReader(strings.NewReader("data"), atEnd(func() { trailer.Set("X-Sum", "42") }))))(t)
	r.Trailer = trailer
	resp := must(rt.RoundTrip(r))(t)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "42" {
		t.Errorf("the server saw trailer %q, want 42", b)
	}
}

type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func responseTrailers(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "data")
		w.Header().Set("X-Sum", "42")
	})
	resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got := resp.Trailer.Get("X-Sum"); got != "42" {
		t.Errorf("trailer %q, want 42", got)
	}
}

func lengths(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.ContentLength, r.TransferEncoding, len(b))
	})
	chunked := "-1 [chunked] 3"
	if h2 {
		chunked = "-1 [] 3"
	}
	for _, tt := range []struct {
		name, want string
		body       io.Reader
		length     int64 // that http.NewRequest cannot know
	}{
		{"known", "3 [] 3", strings.NewReader("abc"), 0},
		{"said", "3 [] 3", testnet.NewBody("abc"), 3},
		{"unknown", chunked, pieces("abc"), 0},
		{"none", "0 [] 0", http.NoBody, 0},
	} {
		r := must(http.NewRequest("POST", "http://h/", tt.body))(t)
		if tt.length != 0 {
			r.ContentLength = tt.length
		}
		resp := must(rt.RoundTrip(r))(t)
		if b, _ := io.ReadAll(resp.Body); string(b) != tt.want {
			t.Errorf("%s: the server saw %q, want %q", tt.name, b, tt.want)
		}
		resp.Body.Close()
	}
}

func slowBody(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		for range 10 {
			io.WriteString(w, ".")
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Second)
		}
	})
	resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != ".........." || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

func hungHeaders(t *testing.T, l layer, h2 bool) {
	var n atomic.Int64
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		io.Copy(io.Discard, r.Body) // only then does an HTTP/1 server watch for the client's leaving
		<-r.Context().Done()
	})
	start := time.Now()
	_, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", strings.NewReader("x")))(t))
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v is no timeout", err)
	}
	if d := time.Since(start); d < 30*time.Second || d > 31*time.Second || n.Load() != 1 {
		t.Errorf("a POST ended after %v and %d attempts, want 30s and 1", d, n.Load())
	}
}

func stalledBody(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
	defer resp.Body.Close()
	start := time.Now()
	b, err := io.ReadAll(resp.Body)
	var timeout interface{ Timeout() bool }
	if string(b) != "begun" || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("read %q, %v; want a timeout", b, err)
	}
	if d := time.Since(start); d < time.Minute || d > 61*time.Second {
		t.Errorf("after %v, want 60s", d)
	}
}

func quietStream(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for range 3 {
			io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Hour)
		}
	})
	resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); strings.Count(string(b), "data") != 3 || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

func blockedUpload(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	pr, pw := io.Pipe() // never written to
	defer pw.Close()
	start := time.Now()
	_, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", pr))(t))
	if d := time.Since(start); err == nil || d > 31*time.Second {
		t.Errorf("%v after %v", err, d)
	}
	synctest.Wait() // a transport may close the body after it has returned
	if _, err := pw.Write([]byte("x")); err == nil {
		t.Error("the body was left open")
	}
}

func earlyAnswer(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(413)
		io.WriteString(w, "too much")
	})
	for range 10 {
		resp, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", io.LimitReader(new(zeros), 4<<20)))(t))
		if err != nil { // the server may close before all is written
			continue
		}
		if resp.StatusCode != 413 {
			t.Errorf("status %d", resp.StatusCode)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func cancelledRead(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	resp := must(rt.RoundTrip(get(t, "http://h/").WithContext(ctx)))(t)
	defer resp.Body.Close()
	time.AfterFunc(time.Second, cancel)
	start := time.Now()
	if b, err := io.ReadAll(resp.Body); string(b) != "begun" || !errors.Is(err, context.Canceled) {
		t.Errorf("read %q, %v", b, err)
	}
	if d := time.Since(start); d != time.Second {
		t.Errorf("after %v, want 1s", d)
	}
}

func reverseProxy(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, b)
	})
	proxy := &httputil.ReverseProxy{Transport: rt, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(must(url.Parse("http://backend/"))(t))
	}}
	front, _, stop := testnet.Server(t, proxy, false)
	defer stop()
	resp := must(front.RoundTrip(must(http.NewRequest("POST", "http://front/p", pieces("body")))(t)))(t)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "POST /p body" {
		t.Errorf("through the proxy: %q", b)
	}
}

func redirects(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
			http.Redirect(w, r, "/next", http.StatusFound)
			return
		}
		c, _ := r.Cookie("seen")
		fmt.Fprint(w, r.URL.Path, c)
	})
	hops := 0
	client := &http.Client{Transport: rt, Jar: must(cookiejar.New(nil))(t), CheckRedirect: func(*http.Request, []*http.Request) error {
		hops++
		return nil
	}}
	resp := must(client.Get("http://h/"))(t)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "/nextseen=1" && string(b) != "/next seen=1" || hops != 1 {
		t.Errorf("%q after %d hops", b, hops)
	}
}

func zipped(t *testing.T, l layer, h2 bool) {
	rt, _ := serve(t, l, h2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "plain")
		z.Close()
	})
	resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "plain" || err != nil || !resp.Uncompressed {
		t.Errorf("%q, %v, uncompressed %v", b, err, resp.Uncompressed)
	}
}

// noneLeft mixes ends of all kinds and counts what stays open.
func noneLeft(t *testing.T, l layer, h2 bool) {
	base, n, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(503)
		case "/slow":
			time.Sleep(2 * time.Second)
		}
		io.WriteString(w, "text")
	}), h2)
	rt := l.wrap(t, base)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Millisecond)
			defer cancel()
			r := get(t, "http://h"+[]string{"/", "/busy", "/slow"}[i%3]).WithContext(ctx)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				return
			}
			if i%2 == 0 {
				io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	time.Sleep(3 * time.Second) // handlers whose clients gave up sleep on
	stop()
	synctest.Wait()
	if open := n.Open(); open != 0 {
		t.Errorf("%d connections left", open)
	}
}

func upgrade(t *testing.T, l layer) {
	rt, _ := serve(t, l, false, func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buf.ReadString('\n')
		io.WriteString(conn, line)
	})
	r := get(t, "http://h/")
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp := must(rt.RoundTrip(r))(t)
	defer resp.Body.Close()
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != 101 || !ok {
		t.Fatalf("status %d, body %T", resp.StatusCode, resp.Body)
	}
	time.Sleep(time.Hour) // no timeout of ours may fire now
	io.WriteString(rw, "hello\n")
	if line, err := bufio.NewReader(rw).ReadString('\n'); line != "hello\n" || err != nil {
		t.Errorf("echo %q, %v", line, err)
	}
}
