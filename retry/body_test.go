package retry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// The first attempt gets the caller's own body, each later one a new one of
// GetBody; each is closed, and the request is not touched.
func TestEachAttemptGetsABodyOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*testnet.Body
		fresh := func() (io.ReadCloser, error) {
			b := testnet.NewBody("body")
			made = append(made, b)
			return b, nil
		}
		r := request(t, "PUT", "http://a.example/", "body")
		first, _ := fresh()
		r.Body, r.GetBody = first, fresh
		before := *r
		s := play(step{status: 503}, step{err: errReset}, step{status: 200})
		resp, err := newTransport(t, s, retry.Config{}).RoundTrip(r)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if want := []string{"body", "body", "body"}; !reflect.DeepEqual(s.bodies, want) || len(made) != 3 {
			t.Errorf("sent %q with %d bodies", s.bodies, len(made))
		}
		for i, b := range made {
			if b.Closes() != 1 {
				t.Errorf("body %d was closed %d times", i, b.Closes())
			}
		}
		if r.Body != before.Body || r.ContentLength != before.ContentLength || !reflect.DeepEqual(r.Header, before.Header) {
			t.Error("the request was changed")
		}
		for i, q := range s.reqs {
			if q.ContentLength != 4 || q.GetBody == nil {
				t.Errorf("attempt %d: length %d", i, q.ContentLength)
			}
		}
	})
}

// A GetBody that fails ends the request: with the answer, if there is one,
// unread; else with its error and the attempt's.
func TestGetBodyFails(t *testing.T) {
	bad := errors.New("file is gone")
	for _, withAnswer := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "body")
			r.GetBody = func() (io.ReadCloser, error) { return nil, bad }
			body := testnet.NewBody("sorry")
			s := play(step{status: 503, body: body})
			if !withAnswer {
				s = play(step{err: errReset})
			}
			rt := newTransport(t, s, retry.Config{})
			resp, err := rt.RoundTrip(r)
			if s.calls() != 1 || hostIn(rt.Stats(), "a.example").Allowance != 500 {
				t.Errorf("%d attempts, stats %+v", s.calls(), rt.Stats())
			}
			if withAnswer {
				if err != nil || body.Reads() != 0 || text(t, resp) != "sorry" {
					t.Errorf("got %v, %v", resp, err)
				}
				return
			}
			var e *retry.Error
			if !errors.Is(err, bad) || !errors.As(err, &e) || e.Tried[0].Err != errReset || e.Reason != retry.BodyGone {
				t.Errorf("got %v", err)
			}
		})
	}
}

// No body and http.NoBody stay what they are, on every attempt.
func TestNoBodyStays(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body = body
			s := play(step{status: 503}, step{status: 200})
			newTransport(t, s, retry.Config{}).RoundTrip(r)
			if len(s.reqs) != 2 || s.reqs[0].Body != body || s.reqs[1].Body != body {
				t.Errorf("%d attempts: %v, %v", len(s.reqs), s.reqs[0].Body, s.reqs[1].Body)
			}
		})
	}
}

// A body without GetBody is sent again if nothing of it was read, or if it was
// kept; it is closed once, at the end.
func TestABodyThatWasNotReadOrWasKeptIsSentAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		read   int64 // what the failing attempt reads; -1: all
		buffer int64
		want   int // attempts
	}{
		{"untouched", 0, 0, 2},
		{"touched", 1, 0, 1},
		{"read to the end", -1, 0, 1},
		{"kept", -1, 5, 2},
		{"kept in part", 3, 5, 2},
		{"too long to keep", -1, 4, 1},
		{"too long, but not yet", 3, 4, 2},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			body := testnet.NewBody("12345")
			var got []string
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				defer r.Body.Close()
				if got = append(got, ""); len(got) == 1 {
					n := tt.read
					if n < 0 {
						n = 1 << 20
					}
					for b := make([]byte, 1); n > 0; n-- {
						if _, err := r.Body.Read(b); err != nil {
							break
						}
					}
					return nil, errReset
				}
				b, err := io.ReadAll(r.Body)
				got[len(got)-1] = string(b)
				if err != nil {
					return nil, err
				}
				return testnet.Answer(r, 200, nil, nil), nil
			})
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = body, 5
			resp, err := newTransport(t, base, retry.Config{BufferBody: tt.buffer}).RoundTrip(r)
			if len(got) != tt.want || body.Closes() != 1 {
				t.Errorf("got %d attempts and %d closes, want %d and 1", len(got), body.Closes(), tt.want)
			}
			if tt.want == 2 && (err != nil || resp.StatusCode != 200 || got[1] != "12345") {
				t.Errorf("got %v, %v with %q", resp, err, got[1])
			}
			if tt.want == 1 && !errors.Is(err, errReset) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A file is sent from where it stood, on every attempt, and closed once.
func TestFileFromWhereItStood(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Seek(4, io.SeekStart)
		r := request(t, "PUT", "http://a.example/", "")
		r.Body, r.ContentLength = f, 6
		s := play(step{status: 503}, step{err: errReset}, step{status: 200})
		if resp, err := newTransport(t, s, retry.Config{}).RoundTrip(r); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if want := []string{"456789", "456789", "456789"}; !reflect.DeepEqual(s.bodies, want) {
			t.Errorf("sent %q", s.bodies)
		}
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the file is open: %v", err)
		}
	})
}

// A body whose own Read fails is not sent again.
func TestBodyReadError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			calls++
			defer r.Body.Close()
			_, err := io.ReadAll(r.Body)
			return nil, err
		})
		r := request(t, "PUT", "http://a.example/", "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("12"), failing{}))
		_, err := newTransport(t, base, retry.Config{BufferBody: 1 << 10}).RoundTrip(r)
		if !errors.Is(err, errReset) || calls != 1 {
			t.Errorf("got %v after %d attempts", err, calls)
		}
	})
}

// The write loop of an attempt that has ended may still be reading when the
// next one starts: nothing is lost, mixed or raced.
func TestALateReaderMixesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		want := strings.Repeat("0123456789", 1000)
		go func() {
			for part := range bytes.SplitAfterSeq([]byte(want), []byte("9")) {
				time.Sleep(time.Millisecond)
				pw.Write(part)
			}
			pw.Close()
		}()
		var wg sync.WaitGroup
		var got []byte
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls++; calls < 4 {
				wg.Go(func() { io.ReadAll(r.Body); r.Body.Close() })
				time.Sleep(100 * time.Millisecond)
				return testnet.Answer(withoutBody(r), 503, nil, nil), nil // early, while it uploads
			}
			b, err := io.ReadAll(r.Body)
			r.Body.Close()
			got = b
			if err != nil {
				return nil, err
			}
			return testnet.Answer(withoutBody(r), 200, nil, nil), nil
		})
		r := request(t, "PUT", "http://a.example/", "")
		r.Body = pr
		resp, err := newTransport(t, base, retry.Config{MaxAttempts: 5, BufferBody: 1 << 20, Backoff: fixed(0)}).RoundTrip(r)
		wg.Wait()
		if err != nil || resp.StatusCode != 200 || string(got) != want {
			t.Errorf("got %v, %v with %d bytes, want %d", resp, err, len(got), len(want))
		}
	})
}

func withoutBody(r *http.Request) *http.Request {
	c := *r
	c.Body = nil
	return &c
}

// A source whose Read is stuck is closed soon after its attempt ended, also
// when it is being kept.
func TestStuckSource(t *testing.T) {
	for _, buffer := range []int64{0, 1 << 10} {
		synctest.Test(t, func(t *testing.T) {
			pr, _ := io.Pipe()
			r := request(t, "PUT", "http://a.example/", "")
			r.Body = pr
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				// As HTTP/1: waits for its write loop, whatever the context says.
				_, err := io.ReadAll(r.Body)
				return nil, err
			})
			start := time.Now()
			_, err := newTransport(t, base, retry.Config{AttemptTimeout: time.Second, BufferBody: buffer}).RoundTrip(r)
			if err == nil || time.Since(start) > 5*time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	}
}
