package breaker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestRealTransports judges what net/http says over HTTP/1 and HTTP/2.
func TestRealTransports(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/hang":
						<-r.Context().Done()
					case "/die":
						panic(http.ErrAbortHandler)
					case "/trailer":
						w.Header().Set("Trailer", "X-Sum")
						io.Copy(w, r.Body)
						w.Header().Set("X-Sum", "42")
					}
				})
				base, net, stop := testnet.Server(t, h, http2)
				defer stop()
				cs := circuits(t, breaker.Config{OpenFor: time.Second})
				client := &http.Client{Transport: cs.Door(cs.Meter(base))}
				call := func(limit time.Duration, path string) error {
					ctx, cancel := context.WithCancel(t.Context())
					if limit > 0 {
						ctx, cancel = context.WithTimeout(ctx, limit)
					} else if limit < 0 {
						time.AfterFunc(max(1, -limit), cancel)
					}
					defer cancel()
					r, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example"+path, nil)
					resp, err := client.Do(r)
					if err == nil {
						resp.Body.Close()
					}
					return err
				}
				calls := func(n int, limit time.Duration, path string, s breaker.State) {
					t.Helper()
					for range n {
						call(limit, path)
					}
					want(t, cs, s, path+" "+limit.String())
					cs.Force("a.example", breaker.Closed)
					cs.Release("a.example")
				}
				calls(20, -time.Minute, "/hang", breaker.Closed)
				calls(20, 900*time.Millisecond, "/hang", breaker.Closed)
				calls(5, time.Second, "/hang", breaker.Open)
				calls(5, 0, "/die", breaker.Open)
				base.CloseIdleConnections()
				net.Refuse.Store(true)
				calls(5, 0, "/", breaker.Open)
				net.Refuse.Store(false)

				r, _ := http.NewRequest("POST", "http://a.example/trailer", strings.NewReader("body"))
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != "body" || resp.Trailer.Get("X-Sum") != "42" {
					t.Errorf("%q, trailer %v", body, resp.Trailer)
				}

				// http.Client's own timeout is a deadline like any other.
				client.Timeout = 2 * time.Second
				calls(5, 0, "/hang", breaker.Open)
				cs.Force("a.example", breaker.Open)
				var e *breaker.Error
				if err := call(0, "/"); !errors.As(err, &e) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestUpgrade: a connection that changes its protocol stays writable.
func TestUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			io.CopyN(conn, rw, 4)
		}), false)
		defer stop()
		cs := circuits(t, breaker.Config{})
		r, _ := http.NewRequest("GET", site, nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
		resp, err := cs.Door(cs.Meter(base)).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatal("the body cannot be written to")
		}
		io.WriteString(conn, "ping")
		got := make([]byte, 4)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "ping" {
			t.Errorf("%q, %v", got, err)
		}
		conn.Close()
	})
}
