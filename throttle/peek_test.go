package throttle_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/peek"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// trickle gives its text after a time, and then ends.
type trickle struct {
	after time.Duration
	text  io.Reader
	gone  chan struct{}
}

func (r *trickle) Read(b []byte) (int, error) {
	if r.after > 0 {
		select {
		case <-time.After(max(1, r.after)):
		case <-r.gone:
			return 0, io.ErrUnexpectedEOF
		}
		r.after = 0
	}
	return r.text.Read(b)
}

func (r *trickle) Close() error { close(r.gone); return nil }

// TestPeekedBodyIsGivenBack whole, whatever of it was looked at.
func TestPeekedBodyIsGivenBack(t *testing.T) {
	long := `{"error": "` + strings.Repeat("x", 9000) + `"}`
	for _, test := range []struct {
		name string
		peek int64
		text string
		wait time.Duration // of the first byte
		most time.Duration // until the answer is here
	}{
		{"short", 0, `{"error": "slow down"}`, 0, 0},
		{"long", 0, long, 0, 0},
		{"cut", 3, long, 0, 0},
		{"off", -1, long, time.Minute, 0},
		{"slow", 0, long, time.Minute, peek.For},
		{"empty", 0, "", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(func(r *http.Request) (*http.Response, error) {
					body := &trickle{test.wait, strings.NewReader(test.text), make(chan struct{})}
					return testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}, body), nil
				})
				tr := newTransport(t, b, throttle.Config{PeekBody: test.peek, Default: throttle.Budget{InFlight: 3}})
				resp := mustGet(t, tr, "http://a/")
				if got := time.Since(b.Start); got > test.most {
					t.Errorf("answered after %v, want %v", got, test.most)
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil || string(got) != test.text {
					t.Errorf("got %d bytes, %v, want the %d sent", len(got), err, len(test.text))
				}
				resp.Body.Close()
			})
		})
	}
}

// TestPeekEndsWithTheBody: an answer that is closed unread leaves no goroutine;
// the bubble would say so.
func TestPeekEndsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			body := &trickle{time.Hour, strings.NewReader("{}"), make(chan struct{})}
			return testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}}, body), nil
		})
		resp := mustGet(t, newTransport(t, b, throttle.Config{}), "http://a/")
		resp.Body.Close()
		synctest.Wait()
	})
}

// TestPeekHearsTheBody: a wait that stands in the body only.
func TestPeekHearsTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if n++; n > 1 {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			text := `{"message": "You are being rate limited.", "retry_after": 40, "global": false}`
			return testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(text)), nil
		})
		tr := newTransport(t, b, throttle.Config{})
		mustGet(t, tr, "http://a/")
		mustGet(t, tr, "http://a/")
		if at := b.Times(); at[1] < 40*time.Second {
			t.Errorf("arrived at %v, want the second after the 40s that the body asks for", at)
		}
	})
}

// PeekBody of a negative number reads nothing.
func TestPeekNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody(`{"error": "slow down"}`)
		base := newBase(func(r *http.Request) (*http.Response, error) {
			resp := testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}}, body)
			resp.ContentLength = -1
			return resp, nil
		})
		resp := mustGet(t, newTransport(t, base, throttle.Config{PeekBody: -1}), "http://a/")
		if body.Reads() != 0 {
			t.Errorf("%d reads", body.Reads())
		}
		resp.Body.Close()
	})
}
