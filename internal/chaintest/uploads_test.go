package chaintest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// endless is a source that never ends and never blocks.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A long upload that goes on is sent once, and says nothing against its host.
func TestLongUploads(t *testing.T) {
	const size = 60 << 20
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got atomic.Int64
				base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for {
						n, err := io.CopyN(io.Discard, r.Body, 1<<20)
						if got.Add(n); err != nil {
							return
						}
						testnet.Wait(r.Context(), time.Second)
					}
				}), http2)
				rt := must(weir.New(base, weir.Config{}))(t)
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						r := get(t, "http://h/upload")
						r.Method, r.Body, r.ContentLength = "PUT", testnet.BodyOf(io.LimitReader(endless{}, size)), size
						r.GetBody = func() (io.ReadCloser, error) { return testnet.BodyOf(io.LimitReader(endless{}, size)), nil }
						resp, err := rt.RoundTrip(r)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					})
				}
				wg.Wait()
				if sent := got.Load(); sent != 2*size {
					t.Errorf("%d MiB arrived of two times %d", sent>>20, size>>20)
				}
				for range 10 {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				rt.Close()
				stop()
			})
		})
	}
}
