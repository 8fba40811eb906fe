package chaintest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// bucketUntilFull is a bucket of 50 that fills in a minute, and states when it is full, as
// Anthropic does.
func bucketUntilFull(dice *rand.Rand) testnet.Func {
	var mu sync.Mutex
	b := fullBucket(50)
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(roundTrip)
		mu.Lock()
		b.look()
		h, status := make(http.Header), 200
		if b.there >= 1 {
			b.there--
		} else {
			status = 429
			h.Set("Retry-After", retryAfter(b.wait(1)))
		}
		h.Set("Anthropic-Ratelimit-Requests-Limit", "50")
		h.Set("Anthropic-Ratelimit-Requests-Remaining", strconv.Itoa(int(b.there)))
		h.Set("Anthropic-Ratelimit-Requests-Reset", time.Now().Add(time.Duration((50-b.there)/50*float64(time.Minute))).UTC().Format(time.RFC3339))
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		takes := time.Duration((1 + 3*dice.Float64()) * float64(time.Second))
		mu.Unlock()
		time.Sleep(takes)
		return testnet.Answer(r, status, h, nil), nil
	}
}

// TestABucketThatSaysWhenItIsFullRefusesNobody: Anthropic states when all of a bucket is back. A
// burst that the bucket can serve in time is not refused because that is later.
func TestABucketThatSaysWhenItIsFullRefusesNobody(t *testing.T) {
	const calls, callers = 95, 64
	for seed := range uint64(testnet.Drawn(10, 3)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(26 * 365 * 24 * time.Hour)
			rt := must(weir.New(bucketUntilFull(rand.New(rand.NewPCG(seed, 3))), weir.Config{}))(t)
			start := time.Now()
			var next, lost atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for next.Add(1) <= calls {
						resp, err := rt.RoundTrip(get(t, "https://api.anthropic.com/v1/messages"))
						if err != nil || resp.StatusCode != 200 {
							lost.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if took := time.Since(start); lost.Load() > 0 || took > 65*time.Second {
				t.Errorf("%d of %d calls were lost in %v, want none in 54 s and a few", lost.Load(), calls, took)
			}
		})
	}
}
