package retry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// A caller who gives up while the server reads his body and has sent its
// headers: Wire closes the request body with the context, and a Read of the
// answer ends at once, because net/http then closes the connection.
//
// Only where that does not close anything, the Read goes on. A net/http that
// is given the same early close of the request body blocks there as well, so it
// is that close, which the RoundTripper contract allows, and nothing else of
// Wire. Without it the writer of the body may wrap it up after the end of the
// request, and the server then ends its answer. It is how net/http's own
// TestTransportPoolConnConnectionBecomesAvailableDuringDial cleans up: its
// connections override Close with one that only takes a note, so that it
// deadlocks over Wire, and over any RoundTripper that closes a request body
// when its context ends.
func TestRequestBodyIsClosedWithTheContext(t *testing.T) {
	plain := func(base http.RoundTripper, _ *http.Request) http.RoundTripper { return base }
	closing := func(base http.RoundTripper, r *http.Request) http.RoundTripper {
		context.AfterFunc(r.Context(), func() { r.Body.Close() })
		return base
	}
	wired := func(base http.RoundTripper, _ *http.Request) http.RoundTripper {
		return retry.Wire(base, retry.Config{})
	}
	for _, tt := range []struct {
		name  string
		over  func(http.RoundTripper, *http.Request) http.RoundTripper
		deaf  bool // closing the connection does not close it
		ended bool // the writer finds its body closed
		want  time.Duration
	}{
		{"net/http", plain, false, false, 0},
		{"net/http, closing", closing, false, true, 0},
		{"Wire", wired, false, true, 0},
		{"net/http, deaf", plain, true, false, 0},
		{"net/http, closing, deaf", closing, true, true, time.Second},
		{"Wire, deaf", wired, true, true, time.Second},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			base, conns, stop := echoless(t, tt.deaf)
			defer stop()
			ctx, cancel := context.WithCancel(t.Context())
			pr, pw := io.Pipe()
			r, _ := http.NewRequestWithContext(ctx, "POST", "http://a.example/", pr)
			resp, err := tt.over(base, r).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			synctest.Wait()
			ended := make(chan error, 1)
			go func() {
				_, err := pw.Write([]byte("x"))
				ended <- err
				pw.Close()
			}()
			start := time.Now()
			time.AfterFunc(time.Second, func() { (<-conns).Close() })
			io.ReadAll(resp.Body)
			resp.Body.Close()
			if took := time.Since(start); took != tt.want {
				t.Errorf("the Read took %v, want %v", took, tt.want)
			}
			synctest.Wait()
			select {
			case err := <-ended:
				if (err != nil) != tt.ended {
					t.Errorf("writing on: %v", err)
				}
			default:
				if tt.ended {
					t.Error("the writer is blocked")
				}
				pr.Close()
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// echoless is a server that answers at once and then reads the request's body
// to its end, and its connections.
func echoless(t *testing.T, deaf bool) (base *http.Transport, conns chan net.Conn, stop func()) {
	base, _, stop = testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		io.Copy(io.Discard, r.Body)
	}), false)
	conns = make(chan net.Conn, 1)
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		conns <- c
		if deaf {
			return deafConn{c}, err
		}
		return c, err
	}
	return base, conns, stop
}

type deafConn struct{ net.Conn }

func (deafConn) Close() error { return nil }
