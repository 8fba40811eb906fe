package throttle_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// OnLearn is not called again with what it was told already, however often a server refuses what is too
// many at a time, in whatever way it says so.
func TestOnLearnIsToldNewsOnly(t *testing.T) {
	for name, refusal := range map[string]func(r *http.Request) *http.Response{
		"429": func(r *http.Request) *http.Response { return testnet.Answer(r, 429, nil, nil) },
		"named": func(r *http.Request) *http.Response {
			return testnet.Answer(r, 429, http.Header{"X-Shopify-Shop-Api-Call-Limit": {"40/40"}}, nil)
		},
		"503": func(r *http.Request) *http.Response { return testnet.Answer(r, 503, nil, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var open, refused atomic.Int32
			draw := draws(1)
			told := map[string]int{}
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if open.Add(1); open.Load() > 5 {
					time.Sleep(10 * time.Millisecond)
					open.Add(-1)
					refused.Add(1)
					return refusal(r), nil
				}
				time.Sleep(time.Duration(100+draw(1900)) * time.Millisecond)
				open.Add(-1)
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{OnLearn: func(l throttle.Learned) {
				mu.Lock()
				defer mu.Unlock()
				told[l.Why]++
			}})
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					for range 60 {
						mustServe(t, tr, "http://h/x")
					}
				})
			}
			wg.Wait()
			for why, n := range told {
				if n > 2 { // it may be found, taken back, and found again
					t.Errorf("%s: of %d refusals OnLearn was told %d times: %s", name, refused.Load(), n, why)
				}
			}
			if len(told) == 0 {
				t.Errorf("%s: of %d refusals OnLearn was told nothing", name, refused.Load())
			}
		})
	}
}
