package retry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// The clock stops at the headers: a body that flows is not cut, however long
// it takes, nor is a reader who takes his time.
func TestFlowingBody(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		for range 10 {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			time.Sleep(9 * time.Second)
		}
	}
	c := retry.Config{AttemptTimeout: time.Second, StallTimeout: 10 * time.Second}
	over(t, h, c, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(35 * time.Second)
		if got := text(t, resp); got != "xxxxxxxxxx" {
			t.Errorf("got %q", got)
		}
	})
}

// A body that stalls ends with an error that says so, is a timeout, and does
// not look like the end.
func TestAStalledBodyEndsInATimeout(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		quietly(r)
	}
	over(t, h, retry.Config{StallTimeout: 10 * time.Second}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		start := time.Now()
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		var late *retry.TimeoutError
		if string(got) != "half" || !errors.As(err, &late) || !late.Body || !late.Timeout() || late.Host != "a.example" {
			t.Errorf("got %q, %v", got, err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		resp.Body.Close()
	})
}

// The context that the base sees lives until the body is closed or read to
// its end, and not longer.
func TestContextLivesAsLongAsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name string
			body io.ReadCloser
			end  func(resp *http.Response)
		}{
			{"close", testnet.NewBody("x"), func(resp *http.Response) { resp.Body.Close() }},
			{"end", testnet.NewBody("x"), func(resp *http.Response) { io.ReadAll(resp.Body) }},
			{"no body", http.NoBody, func(*http.Response) {}},
		} {
			var ctx context.Context
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				ctx = r.Context()
				return testnet.Answer(r, 200, nil, tt.body), nil
			})
			resp, err := newTransport(t, base, retry.Config{AttemptTimeout: time.Second}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if tt.body != http.NoBody && ctx.Err() != nil {
				t.Errorf("%s: ended early: %v", tt.name, context.Cause(ctx))
			}
			tt.end(resp)
			if ctx.Err() == nil {
				t.Errorf("%s: the context lives on", tt.name)
			}
		}
	})
}

// A 101 is writable, no clock runs, and ReverseProxy can half-close it.
func TestSwitchingProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, http.HandlerFunc(echo), false)
		defer stop()
		rt := newTransport(t, base, retry.Config{AttemptTimeout: time.Second, StallTimeout: time.Second})
		r := request(t, "GET", "http://a.example/", "")
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
		resp, err := rt.RoundTrip(r)
		if err != nil || resp.StatusCode != 101 {
			t.Fatal(resp, err)
		}
		rw, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("a 101 with a %T", resp.Body)
		}
		in := bufio.NewReader(rw)
		for range 3 {
			time.Sleep(time.Hour)
			fmt.Fprintln(rw, "hello")
			if line, err := in.ReadString('\n'); line != "hello\n" {
				t.Fatalf("got %q, %v", line, err)
			}
		}
		if c, ok := rw.(interface{ CloseWrite() error }); !ok {
			t.Error("no CloseWrite")
		} else if err := c.CloseWrite(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
		rw.Close()
	})
}

func echo(w http.ResponseWriter, r *http.Request) {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	io.Copy(c, rw)
}

// halves is a connection whose writing side can be closed alone.
type halves struct {
	io.ReadWriteCloser
	closed int
}

func (h *halves) CloseWrite() error {
	h.closed++
	return errReset
}

// CloseWrite of a switched connection is the connection's, if it has one.
func TestDuplexCloseWrite(t *testing.T) {
	closeWrite := func(conn io.ReadWriteCloser) error {
		rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 101, nil, conn), nil
		}), retry.Config{})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body.(interface{ CloseWrite() error }).CloseWrite()
	}
	h := new(halves)
	if err := closeWrite(h); err != errReset || h.closed != 1 {
		t.Errorf("got %v after %d calls", err, h.closed)
	}
	if err := closeWrite(struct{ io.ReadWriteCloser }{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v of a connection without", err)
	}
}
