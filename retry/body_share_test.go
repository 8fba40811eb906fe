package retry_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// unwired is a base that gets request bodies as the attempts lend them: it is
// taken for one with a Wire, which would guard them.
func unwired(f testnet.Func) http.RoundTripper { return &fakeLayer{base: f, layer: trip.Wire} }

// lend sends body, which has no GetBody and says that it has length bytes, by f. Up
// to limit bytes are kept.
func lend(t *testing.T, limit, length int64, body io.ReadCloser, f testnet.Func) (*http.Response, error) {
	t.Helper()
	r := request(t, "PUT", "http://a.example/", "")
	r.Body, r.ContentLength = body, length
	return newTransport(t, unwired(f), retry.Config{MaxAttempts: 5, BufferBody: limit, Backoff: fixed(0)}).RoundTrip(r)
}

// sealed reports that err is what Read returns of a body whose attempt is over.
func sealed(err error) bool {
	return err != nil && err.Error() == "retry: request body read after its attempt ended"
}

// A body is closed once: with the body of the last attempt when the request is
// over, not before, and it is not lent again after that.
func TestABodyIsClosedWithItsLastShare(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			body := testnet.NewBody("body")
			var sent []*http.Request
			resp, err := lend(t, limit, 4, body, func(r *http.Request) (*http.Response, error) {
				if sent = append(sent, r); len(sent) == 1 {
					r.Body.Close()
					return nil, errReset
				}
				return testnet.Answer(withoutBody(r), 200, nil, nil), nil
			})
			if err != nil || resp.StatusCode != 200 || len(sent) != 2 {
				t.Fatalf("limit %d: %v, %v after %d attempts", limit, resp, err, len(sent))
			}
			last := sent[1]
			if body.Closes() != 0 {
				t.Errorf("limit %d: closed %d times while the last attempt has it", limit, body.Closes())
			}
			if last.GetBody != nil {
				if b, err := last.GetBody(); err == nil {
					t.Errorf("limit %d: after the request it is lent again, as %v", limit, b)
				}
			}
			last.Body.Close()
			last.Body.Close()
			if body.Closes() != 1 {
				t.Errorf("limit %d: closed %d times, want 1", limit, body.Closes())
			}
		})
	}
}

// An attempt that waits for an earlier one's Read of the source is freed by its
// Close, and the body is read on by the next.
func TestClosedShareWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		attempts := 0
		var got []byte
		resp, err := lend(t, 100, -1, from, func(r *http.Request) (*http.Response, error) {
			switch attempts++; attempts {
			case 1:
				go r.Body.Read(make([]byte, 4))
				synctest.Wait()
				return nil, errReset
			case 2:
				var err error
				go func() { _, err = r.Body.Read(make([]byte, 4)) }()
				synctest.Wait()
				r.Body.Close()
				if synctest.Wait(); !sealed(err) {
					t.Errorf("got %v of a body that was closed while it waited", err)
				}
				return nil, errReset
			}
			go func() {
				io.WriteString(to, "body")
				to.Close()
			}()
			var err error
			got, err = io.ReadAll(r.Body)
			r.Body.Close()
			return testnet.Answer(withoutBody(r), 200, nil, nil), err
		})
		if err != nil || resp.StatusCode != 200 || attempts != 3 || string(got) != "body" {
			t.Errorf("got %v, %v after %d attempts, the last with %q", resp, err, attempts, got)
		}
	})
}

// A late Close by the write loop of an attempt that has ended does not close
// the body under the next one.
func TestALateCloseLeavesTheNextAttemptItsBody(t *testing.T) {
	for _, buffer := range []int64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			pr, pw := io.Pipe()
			var old, now io.ReadCloser
			resp, err := lend(t, buffer, -1, pr, func(r *http.Request) (*http.Response, error) {
				if old == nil {
					old = r.Body
					return nil, errReset
				}
				now = r.Body
				time.AfterFunc(time.Second, func() { old.Close(); old.Close() })
				time.AfterFunc(2*time.Second, func() { io.WriteString(pw, "body"); pw.Close() })
				if b, err := io.ReadAll(now); err != nil || string(b) != "body" {
					t.Errorf("got %q, %v", b, err)
				}
				return testnet.Answer(withoutBody(r), 200, nil, nil), nil
			})
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			if _, err := old.Read(make([]byte, 1)); !sealed(err) {
				t.Errorf("the attempt that has ended reads on: %v", err)
			}
			now.Close()
			if _, err := pw.Write([]byte("x")); err == nil {
				t.Error("the body is open")
			}
		})
	}
}

// Only a body of known length that is kept whole gets a GetBody, and that ends
// with the request.
func TestGetBodyEndsWithTheRequest(t *testing.T) {
	for _, length := range []int64{-1, 0, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), length
			s := play(step{status: 200})
			resp, err := newTransport(t, s, retry.Config{BufferBody: 100}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			again := s.reqs[0].GetBody
			if (again != nil) != (length > 0) {
				t.Fatalf("length %d: GetBody %t", length, again != nil)
			}
			if again != nil {
				if b, err := again(); b != nil || err == nil || err.Error() != "retry: request body cannot be sent again" {
					t.Errorf("after the request it gives %v, %v", b, err)
				}
			}
		})
	}
}

// A body that fits the buffer exactly can be had again by net/http, too.
func TestBufferedBodyHasGetBody(t *testing.T) {
	for length, want := range map[int]bool{3: true, 4: false} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = testnet.NewBody(strings.Repeat("x", length)), int64(length)
			s := play(step{status: 200})
			resp, err := newTransport(t, s, retry.Config{BufferBody: 3}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := s.reqs[0].GetBody != nil; got != want {
				t.Errorf("a body of %d bytes, 3 kept: GetBody %v, want %v", length, got, want)
			}
		})
	}
}

// bomb is a body whose Read panics, also at an offset.
type bomb struct {
	io.Seeker
	closes *int
}

func (bomb) Read([]byte) (int, error)          { panic("bomb") }
func (bomb) ReadAt([]byte, int64) (int, error) { panic("bomb") }
func (b bomb) Close() error                    { *b.closes++; return nil }

// A body that panics does so where a base can recover it, and leaves nothing
// locked or waiting. It is not sent again if nobody knows how much was read.
func TestABodyThatPanicsLocksNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		body  func(bomb) io.ReadCloser
		calls int
	}{
		"in order":     {func(b bomb) io.ReadCloser { return struct{ io.ReadCloser }{b} }, 1},
		"at an offset": {func(b bomb) io.ReadCloser { return b }, 5},
	} {
		bubble(t, name, func(t *testing.T) {
			calls, closes := 0, 0
			_, err := lend(t, 10, -1, tt.body(bomb{strings.NewReader(""), &closes}), func(r *http.Request) (*http.Response, error) {
				calls++
				if got := panics(func() { r.Body.Read(make([]byte, 1)) }); got != "bomb" {
					t.Errorf("got panic %v", got)
				}
				r.Body.Close()
				return nil, errReset
			})
			if !errors.Is(err, errReset) || calls != tt.calls || closes != 1 {
				t.Errorf("got %v after %d attempts, want %d; closed %d times", err, calls, tt.calls, closes)
			}
		})
	}
}
