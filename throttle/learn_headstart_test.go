package throttle_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// The first request of a kind waits for those of other kinds at a new host for less than a
// second, but a host that answers nobody gets no more than sixteen for that.
func TestAKindHasAHeadStart(t *testing.T) {
	for _, test := range []struct {
		kinds int
		sent  int32
	}{{1, 1}, {100, 16}} {
		synctest.Test(t, func(t *testing.T) {
			var sent, polls atomic.Int32
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/poll" {
					polls.Add(1)
				} else {
					sent.Add(1)
				}
				return nil, testnet.Wait(r.Context(), time.Hour)
			}), throttle.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			call := func(path string) {
				wg.Go(func() { testnet.Get(t, ctx, tr, "http://h"+path) })
			}
			for range 200 {
				call("/poll")
			}
			synctest.Wait()
			for i := range test.kinds {
				call(fmt.Sprintf("/kind%c%c", 'a'+i/26, 'a'+i%26))
			}
			time.Sleep(time.Second)
			if sent.Load() != test.sent || polls.Load() > 24 {
				t.Errorf("of %d kinds %d were sent after a second, want %d; and %d polls, want 24 at most", test.kinds, sent.Load(), test.sent, polls.Load())
			}
			cancel()
			wg.Wait()
		})
	}
}
