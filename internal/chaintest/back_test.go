package chaintest

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestAHostThatIsBackServesAllWhoCome: a host that refused everybody for a while, of whose
// callers most had no time to wait, has soon all that is asked of it when it is back.
func TestAHostThatIsBackServesAllWhoCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if err := testnet.Wait(r.Context(), 20*time.Millisecond); err != nil {
				return nil, err
			}
			if at := time.Since(start); at > 3*time.Second && at < 23*time.Second {
				return testnet.Answer(r, 503, nil, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		var mu sync.Mutex
		var wg sync.WaitGroup
		came, served := make([]int, 60), make([]int, 60)
		for i := 0; time.Since(start) < 50*time.Second; i++ {
			at := int(time.Since(start).Seconds())
			came[at]++
			deadline := []time.Duration{time.Second, 2 * time.Second, time.Minute}[i%3]
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
				mu.Lock()
				defer mu.Unlock()
				if err == nil && resp.StatusCode == 200 {
					served[at]++
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
		t.Log(served)
		for at := 33; at < 50; at++ {
			if served[at] < came[at]*9/10 {
				t.Errorf("of %d that came %d s after it was back, %d were served", came[at], at-23, served[at])
			}
		}
	})
}
