package testnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestHTTPInVirtualTime(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			base, n, stop := Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Hour)
				b, _ := io.ReadAll(r.Body)
				io.WriteString(w, r.Proto+" "+string(b))
			}), h2)
			defer stop()
			start := time.Now()
			big := strings.Repeat("x", 3*window)
			resp, err := base.RoundTrip(mustRequest(t, big))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !strings.HasSuffix(string(b), big) || strings.HasPrefix(string(b), "HTTP/2") != h2 {
				t.Errorf("http2 %v: %.20q..., %v", h2, b, err)
			}
			if d := time.Since(start); d < time.Hour || d > time.Hour+time.Second {
				t.Errorf("took %v of virtual time", d)
			}
			if n.Dialed.Load() != 1 || n.Open() != 1 {
				t.Errorf("dialed %d, open %d", n.Dialed.Load(), n.Open())
			}
			base.CloseIdleConnections()
			synctest.Wait()
			if n.Open() != 0 {
				t.Errorf("%d connections left", n.Open())
			}
		})
	}
}

func mustRequest(t *testing.T, body string) *http.Request {
	r, err := http.NewRequest("PUT", "http://any.example/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := Pipe()
		s.Write([]byte("last words"))
		s.Close()
		if b, err := io.ReadAll(c); string(b) != "last words" || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
		c.Close()

		c, s = Pipe()
		Reset(s)
		if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("after a reset: %v", err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("wrote to a closed peer")
		}

		c, s = Pipe()
		c.SetReadDeadline(time.Now().Add(time.Minute))
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("deadline: %v after %v", err, time.Since(start))
		}
		CloseWrite(c)
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("half-closed: %v", err)
		}
		if _, err := s.Write([]byte("still")); err != nil {
			t.Error(err)
		}
		s.Close()
		c.Close()
	})
}

func TestRefuse(t *testing.T) {
	n := New()
	n.Refuse.Store(true)
	_, err := n.DialContext(t.Context(), "tcp", "x:1")
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("%v", err)
	}
}

func TestBody(t *testing.T) {
	b := NewBody("abc")
	if got, _ := io.ReadAll(b); string(got) != "abc" || !b.AtEnd() || b.Reads() == 0 {
		t.Errorf("read %q", got)
	}
	b.Close()
	if _, err := b.Read(nil); err != ErrReadAfterClose || b.Closes() != 1 {
		t.Errorf("%v, %d closes", err, b.Closes())
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for d, want := range map[time.Duration]time.Duration{-1: 0, 0: 0, 400 * time.Millisecond: 400 * time.Millisecond} {
			began := time.Now()
			if err := Wait(ctx, d); err != nil || time.Since(began) != want {
				t.Errorf("%v: %v after %v", d, err, time.Since(began))
			}
		}
		if err := Wait(ctx, time.Minute); err != context.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := Wait(ctx, 0); err != context.DeadlineExceeded {
			t.Error(err)
		}
	})
}
