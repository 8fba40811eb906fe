package citizens

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// TestCookieJar: a jar gets the cookies of what the caller sees, and sends
// them with every attempt.
func TestCookieJar(t *testing.T) {
	var turns atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch c, err := r.Cookie("session"); {
		case r.URL.Path == "/login":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", Path: "/"})
		case err != nil || c.Value != "s1":
			w.WriteHeader(http.StatusUnauthorized)
		case turns.Add(1)%2 == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	bubble(t, h, func(t *testing.T, base *http.Transport) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: over(t, base, weir.Config{}), Jar: jar}
		post(t, c, "http://a.test/login", "")
		for range 3 {
			resp, err := c.Get("http://a.test/")
			if code, _ := read(t, resp, err); code != 200 {
				t.Errorf("status %d", code)
			}
		}
	})
}

// TestRedirects: 307 carries the body on, 303 turns into GET, each step spends
// budget and may be retried.
func TestRedirects(t *testing.T) {
	var turns atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/keep":
			http.Redirect(w, r, "http://b.test/end", http.StatusTemporaryRedirect)
		case r.URL.Path == "/turn":
			http.Redirect(w, r, "http://b.test/end", http.StatusSeeOther)
		case turns.Add(1)%2 == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, body)
		}
	})
	bubble(t, h, func(t *testing.T, base *http.Transport) {
		rt := over(t, base, weir.Config{})
		c := &http.Client{Transport: rt}
		for path, want := range map[string]string{"/keep": "POST b.test text", "/turn": "GET b.test "} {
			if code, got := post(t, c, "http://a.test"+path, "text"); code != 200 || got != want {
				t.Errorf("%s: %d %q, want %q", path, code, got, want)
			}
		}
		for _, h := range rt.Stats().Throttle.Hosts {
			if want := map[string]int64{"a.test": 2, "b.test": 4}[h.Host]; h.Granted != want {
				t.Errorf("%s: %d attempts took budget, want %d", h.Host, h.Granted, want)
			}
		}
	})
}

// TestClientTimeout: it ends the wait for budget before it begins, an attempt,
// a delay and a body.
func TestClientTimeout(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
			}
		case "/503":
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/body":
			io.WriteString(w, "begin")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	bubble(t, h, func(t *testing.T, base *http.Transport) {
		rt := over(t, base, weir.Config{Throttle: throttle.Config{Budgets: map[string]throttle.Budget{
			"busy.test": throttle.MustParseBudget("1/m"),
		}}})
		c := &http.Client{Transport: rt, Timeout: 5 * time.Second}
		for _, tt := range []struct {
			url    string
			after  time.Duration
			status int // 0: an error
		}{
			{"http://busy.test/", 0, 200},
			{"http://busy.test/", 0, 0}, // a minute does not fit
			{"http://a.test/slow", 5 * time.Second, 0},
			{"http://b.test/503", 0, 503}, // 30 s do not fit
			{"http://c.test/body", 5 * time.Second, 200},
		} {
			start := time.Now()
			resp, err := c.Get(tt.url)
			status := 0
			if err == nil {
				status = resp.StatusCode
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if d := time.Since(start); status != tt.status || d < tt.after || d > tt.after+time.Second {
				t.Errorf("%s: %d, %v after %v", tt.url, status, err, d)
			}
			var late interface{ Timeout() bool }
			if err != nil && (!errors.As(err, &late) || !late.Timeout()) {
				t.Errorf("%s: %v is no timeout", tt.url, err)
			}
		}
		synctest.Wait()
	})
}

// TestGzip: what net/http unpacks by itself stays unpacked, also after a
// retry whose packed answer was read on the way.
func TestGzip(t *testing.T) {
	var turns atomic.Int64
	text := strings.Repeat("all work and no play\n", 1000)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		if turns.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		z := gzip.NewWriter(w)
		io.WriteString(z, text)
		z.Close()
	})
	bubble(t, h, func(t *testing.T, base *http.Transport) {
		c := &http.Client{Transport: over(t, base, weir.Config{})}
		resp, err := c.Get("http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		if !resp.Uncompressed || resp.ContentLength != -1 {
			t.Errorf("uncompressed %v, length %d", resp.Uncompressed, resp.ContentLength)
		}
		if code, got := read(t, resp, nil); code != 200 || got != text {
			t.Errorf("%d, %d bytes", code, len(got))
		}
	})
}

// TestMuxing: 50 calls at once share one HTTP/2 connection; a cancelled one
// takes none of the others with it.
func TestMuxing(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			<-r.Context().Done()
			return
		}
		time.Sleep(time.Second)
		fmt.Fprint(w, r.URL.Path)
	})
	bubbleOf(t, h, true, func(t *testing.T, base *http.Transport) {
		c := &http.Client{Transport: over(t, base, weir.Config{})}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		done := make(chan error)
		for i := range 50 {
			go func() {
				path, ctx := fmt.Sprint("/", i), ctx
				if i%5 == 0 {
					path = "/gone"
				} else {
					ctx = t.Context()
				}
				r, err := http.NewRequestWithContext(ctx, "GET", "http://a.test"+path, nil)
				if err != nil {
					done <- err
					return
				}
				resp, err := c.Do(r)
				if path == "/gone" {
					if err == nil {
						resp.Body.Close()
						err = errors.New("no error")
					} else if errors.Is(err, context.DeadlineExceeded) {
						err = nil
					}
					done <- err
					return
				}
				if err == nil {
					b, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if string(b) != path {
						err = fmt.Errorf("%s: %q", path, b)
					}
				}
				done <- err
			}()
		}
		for range 50 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
