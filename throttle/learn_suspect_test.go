package throttle_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestOftenFailingHostIsSoonCleared: a host that fails every second request at
// random is under suspicion of being a limiter for seconds, not for minutes:
// requests that have three seconds each are not refused for most of one.
func TestOftenFailingHostIsSoonCleared(t *testing.T) {
	const perSecond, seconds, seeds = 50, 60, 6
	reached := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 3))
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent := 0
			rt := newTransport(t, testnet.Func(func(q *http.Request) (*http.Response, error) {
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				sent++
				status := 200
				if r.Float64() < 0.5 {
					status = 503
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				return testnet.Answer(q, status, nil, nil), nil
			}), throttle.Config{})
			throttle.Jitter(rt, rand.New(rand.NewPCG(seed, 4)).Float64)
			var wg sync.WaitGroup
			for range perSecond * seconds {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					q, _ := http.NewRequestWithContext(ctx, "GET", "http://h/v1", nil)
					if resp, err := rt.RoundTrip(q); err == nil {
						resp.Body.Close()
					}
				})
				time.Sleep(time.Second / perSecond)
			}
			wg.Wait()
			t.Logf("seed %d: %d of %d", seed, sent, perSecond*seconds)
			reached += sent
		})
	}
	if share := float64(reached) / (perSecond * seconds * seeds); share < 0.55 {
		t.Errorf("%.0f %% of the requests reached the host, want 55", 100*share)
	}
}
