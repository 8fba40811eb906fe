package citizens

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/oauth2"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// flaky answers every odd request with 503.
func flaky(h http.HandlerFunc) http.Handler {
	var turns atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if turns.Add(1)%2 == 1 {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	})
}

// tokens makes a new token at each call.
type tokens struct{ n atomic.Int64 }

func (s *tokens) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: fmt.Sprint("t", s.n.Add(1))}, nil
}

// TestOAuth2: outside, each request has one token; inside, each attempt.
func TestOAuth2(t *testing.T) {
	echo := flaky(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) })
	bubble(t, echo, func(t *testing.T, base *http.Transport) {
		outside := &http.Client{Transport: &oauth2.Transport{Source: new(tokens), Base: over(t, base, weir.Config{})}}
		resp, err := outside.Get("http://a.test/")
		if code, got := read(t, resp, err); code != 200 || got != "Bearer t1" {
			t.Errorf("outside: %d %q", code, got)
		}
		inside := &http.Client{Transport: over(t, &oauth2.Transport{Source: new(tokens), Base: base}, weir.Config{})}
		resp, err = inside.Get("http://a.test/")
		if code, got := read(t, resp, err); code != 200 || got != "Bearer t2" {
			t.Errorf("inside: %d %q", code, got)
		}
	})
}

// TestOtelHTTP: outside it sees requests, inside attempts, and what it puts
// into the header arrives.
func TestOtelHTTP(t *testing.T) {
	echo := flaky(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Traceparent")) })
	bubble(t, echo, func(t *testing.T, base *http.Transport) {
		for where, want := range map[string]int{"outside": 1, "inside": 2} {
			rec := tracetest.NewSpanRecorder()
			provider := trace.NewTracerProvider(trace.WithSpanProcessor(rec))
			opts := []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{})}
			var rt http.RoundTripper
			if where == "outside" {
				rt = otelhttp.NewTransport(over(t, base, weir.Config{}), opts...)
			} else {
				rt = over(t, otelhttp.NewTransport(base, opts...), weir.Config{})
			}
			resp, err := (&http.Client{Transport: rt}).Get("http://a.test/")
			code, parent := read(t, resp, err)
			if code != 200 || len(rec.Ended()) != want || parent == "" {
				t.Errorf("%s: %d, %d spans, traceparent %q", where, code, len(rec.Ended()), parent)
			}
			for _, s := range rec.Ended() {
				if d := s.EndTime().Sub(s.StartTime()); d < 0 || d > time.Minute {
					t.Errorf("%s: a span of %v", where, d)
				}
			}
			provider.Shutdown(t.Context())
		}
	})
}

// TestReverseProxy: bodies both ways, trailers, streams as they come, and the
// client's going away.
func TestReverseProxy(t *testing.T) {
	left := make(chan struct{}, 1)
	backend := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("Trailer", "X-Sum")
			b, _ := io.ReadAll(r.Body) // HTTP/1 does not do both at once
			w.Write(b)
			w.Header().Set("X-Sum", "end")
		case "/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				if i > 0 {
					time.Sleep(5 * time.Minute)
				}
				io.WriteString(w, "data: x\n\n")
				w.(http.Flusher).Flush()
			}
		case "/wait":
			<-r.Context().Done()
			left <- struct{}{}
		}
	})
	bubble(t, backend, func(t *testing.T, base *http.Transport) {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "backend.test"})
		proxy.Transport = over(t, base, weir.Config{})
		proxy.ErrorLog = log.New(io.Discard, "", 0)
		flushSoon(proxy)
		front, _, stop := testnet.Server(t, proxy, false)
		defer stop()
		c := &http.Client{Transport: front}
		big := strings.Repeat("0123456789", 50000)
		resp, err := c.Post("http://front.test/echo", "text/plain", strings.NewReader(big))
		if code, got := read(t, resp, err); code != 200 || got != big || resp.Trailer.Get("X-Sum") != "end" {
			t.Errorf("%d, %d bytes, trailer %q", code, len(got), resp.Trailer)
		}
		start := time.Now()
		if resp, err = c.Get("http://front.test/stream"); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			lines.ReadString('\n')
			if d := time.Since(start); d > time.Duration(i)*5*time.Minute+time.Second {
				t.Errorf("line %d after %v", i, d)
			}
		}
		resp.Body.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", "http://front.test/wait", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(r); err == nil {
			t.Error("no error")
		}
		<-left
		synctest.Wait()
	})
}

// flushSoon has a stream flushed after a moment. What is one by its type or has
// no length is flushed by a timer that is due when it is made, which a bubble
// does not bear: see testnet.Wait.
func flushSoon(proxy *httputil.ReverseProxy) {
	proxy.FlushInterval = time.Millisecond
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Content-Type", "text/plain")
		r.ContentLength = max(0, r.ContentLength)
		return nil
	}
}

// TestWebSocket: through weir alone, and through a ReverseProxy over weir; a
// quiet connection is not stalled, and one that is open holds its place.
func TestWebSocket(t *testing.T) {
	backend := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, b) != nil {
				return
			}
		}
	})
	for _, through := range []string{"weir", "a proxy over weir"} {
		t.Run(through, func(t *testing.T) {
			bubbleOf(t, backend, false, func(t *testing.T, base *http.Transport) {
				rt := over(t, base, weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("1 in flight"), MaxWait: -1}})
				c := &http.Client{Transport: rt}
				if through != "weir" {
					proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "backend.test"})
					proxy.Transport = rt
					front, _, stop := testnet.Server(t, proxy, false)
					defer stop()
					c = &http.Client{Transport: front}
				}
				talk(t, c)
				synctest.Wait()
				talk(t, c) // its place is free again
			})
		})
	}
}

func talk(t *testing.T, c *http.Client) {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "ws://backend.test/", &websocket.DialOptions{HTTPClient: c})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	for i := range 3 {
		msg := fmt.Sprint("message ", i)
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(msg)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := ws.Read(t.Context()); err != nil || string(got) != msg {
			t.Errorf("%q, %v", got, err)
		}
		time.Sleep(10 * time.Minute)
	}
	if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Log(err) // the echo does not say goodbye
	}
}

// TestForwardProxy: through an HTTP proxy, in the clear and by CONNECT, each
// target keeps a budget of its own. In real time, as TLS is real.
func TestForwardProxy(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from "+r.Host) })
	clear, secure := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	defer clear.Close()
	defer secure.Close()
	var connects, forwards atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			connects.Add(1)
			tunnel(w, r)
			return
		}
		forwards.Add(1)
		(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := secure.Client().Transport.(*http.Transport).Clone()
	base.Proxy = http.ProxyURL(at)
	defer base.CloseIdleConnections()
	rt := over(t, base, weir.Config{})
	c := &http.Client{Transport: rt}
	for _, s := range []*httptest.Server{clear, secure} {
		resp, err := c.Get(s.URL)
		if code, got := read(t, resp, err); code != 200 || got != "hello from "+s.Listener.Addr().String() {
			t.Errorf("%d %q", code, got)
		}
	}
	if connects.Load() != 1 || forwards.Load() != 1 {
		t.Errorf("%d connects, %d forwarded", connects.Load(), forwards.Load())
	}
	var hosts []string
	for _, h := range rt.Stats().Throttle.Hosts {
		hosts = append(hosts, h.Host)
	}
	if len(hosts) != 2 || strings.Contains(strings.Join(hosts, " "), at.Host) {
		t.Errorf("hosts: %q", hosts)
	}
}

// tunnel joins the client to the server that CONNECT names.
func tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		there.Close()
		return
	}
	io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(there, in)
		there.Close()
	}()
	io.Copy(here, there)
	here.Close()
}

// TestTLSHTTP2: the real thing, negotiated.
func TestTLSHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(flaky(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := &http.Client{Transport: over(t, s.Client().Transport, weir.Config{})}
	for range 3 {
		resp, err := c.Get(s.URL)
		if code, got := read(t, resp, err); code != 200 || got != "HTTP/2.0" {
			t.Errorf("%d %q", code, got)
		}
	}
	c.CloseIdleConnections()
}
