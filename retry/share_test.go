package retry

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/internal/testnet"
)

// lend is a body without GetBody, kept up to limit bytes.
func lend(t *testing.T, limit int64, body io.ReadCloser) *replay {
	t.Helper()
	r := request(t, "PUT", "http://a.example/", "")
	r.Body = body
	return newReplay(r, limit)
}

// A body is closed once: with the last share of a request that is over, not
// before, and it is not lent again after that.
func TestABodyIsClosedWithItsLastShare(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		body := testnet.NewBody("body")
		p := lend(t, limit, body)
		s := p.next()
		s.Close()
		if body.Closes() != 0 || !p.again() {
			t.Fatalf("limit %d: an untouched share closed the body (%d), again %t", limit, body.Closes(), p.again())
		}
		s = p.next()
		p.finish()
		if body.Closes() != 0 || p.again() || p.next() != nil {
			t.Errorf("limit %d: over, but its share is out: %d closes, again %t", limit, body.Closes(), p.again())
		}
		s.Close()
		s.Close()
		if body.Closes() != 1 || p.again() {
			t.Errorf("limit %d: %d closes, again %t", limit, body.Closes(), p.again())
		}
	}
}

// A share that waits for an earlier one's Read of the source is freed by its
// Close, and the body is read on by the next.
func TestClosedShareWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		p := lend(t, 100, from)
		first := p.next()
		go first.Read(make([]byte, 4))
		synctest.Wait()
		second := p.next()
		var err error
		go func() { _, err = second.Read(make([]byte, 4)) }()
		synctest.Wait()
		second.Close()
		synctest.Wait()
		if err != errSealed {
			t.Fatalf("got %v of a share that was closed while it waited", err)
		}
		third := p.next()
		to.Write([]byte("body"))
		to.Close()
		if b, err := io.ReadAll(third); string(b) != "body" || err != nil {
			t.Errorf("the third got %q, %v", b, err)
		}
		third.Close()
		p.finish()
	})
}

// Only a body of known length that is kept whole gets a GetBody, and that ends
// with the request.
func TestGetBodyEndsWithTheRequest(t *testing.T) {
	for _, length := range []int64{-1, 0, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), length
			s := play(step{status: 200})
			resp, err := newTransport(t, s, Config{BufferBody: 100}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			again := s.reqs[0].GetBody
			if (again != nil) != (length > 0) {
				t.Fatalf("length %d: GetBody %t", length, again != nil)
			}
			if again != nil {
				if b, err := again(); b != nil || err != errGone {
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
			resp, err := newTransport(t, s, Config{BufferBody: 3}).RoundTrip(r)
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
