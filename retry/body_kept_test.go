package retry_test

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// A body is kept only as far as BufferBody says.
func TestLargeBodyIsNotKept(t *testing.T) {
	const size = 256 << 20
	for _, buffer := range []int64{0, 1 << 10} {
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 1<<20))
			if n != size || err != nil {
				t.Errorf("read %d, %v", n, err)
			}
			r.Body.Close()
			return testnet.Answer(withoutBody(r), 503, nil, nil), nil
		})
		rt := newTransport(t, base, retry.Config{BufferBody: buffer})
		r := request(t, "PUT", "http://a.example/", "")
		r.Body = io.NopCloser(io.LimitReader(zeros{}, size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp, err := rt.RoundTrip(r)
		runtime.ReadMemStats(&after)
		if err != nil || resp.StatusCode != 503 {
			t.Fatal(resp, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("with BufferBody %d, sending %d bytes took %d bytes", buffer, size, got)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// What is kept is what was sent, at every size around the limit.
func TestBufferBoundary(t *testing.T) {
	for size := range 12 {
		text := bytes.Repeat([]byte("x"), size)
		s := play(step{status: 500}, step{status: 200})
		r := request(t, "PUT", "http://a.example/", "")
		r.Body = io.NopCloser(bytes.NewReader(text))
		resp, err := newTransport(t, s, retry.Config{BufferBody: 8, Backoff: fixed(0)}).RoundTrip(r)
		want := 200
		if size > 8 {
			want = 500
		}
		if err != nil || resp.StatusCode != want || s.bodies[len(s.bodies)-1] != string(text) {
			t.Errorf("%d bytes: got %v, %v", size, resp, err)
		}
	}
}
