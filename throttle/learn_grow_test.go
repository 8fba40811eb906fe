package throttle_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A client with little to ask meets one refusal, and then has a lot to ask of a
// server that bears far more than was ever tried. The rate that was found grows
// until the server refuses again, however low it began.
func TestARateThatIsBorneGrowsBack(t *testing.T) {
	for _, test := range []struct {
		name string
		hint time.Duration
		rate float64 // that the server bears, and its burst
		jobs int
		most float64 // times the ideal time, in the mean
	}{
		{"fifty a second after a hint of 10 s", 10 * sec, 50, 1000, 5},  // of 60 means the largest was 3.3
		{"fifty a second after a hint of 20 s", 20 * sec, 50, 1000, 10}, // 6.4
		{"two a second", 10 * sec, 2, 100, 3},                           // 1.9
		{"a hundred a second", 10 * sec, 100, 5000, 6},                  // 5.5 was seen
	} {
		t.Run(test.name, func(t *testing.T) {
			const runs = 8 // each has jitter of its own
			sum := 0.0
			for range runs {
				synctest.Test(t, func(t *testing.T) {
					b := newBase(afterOneRefusal(test.hint, test.rate))
					tr := newTransport(t, b, throttle.Config{MaxWait: 24 * time.Hour})
					for range 5 {
						mustGet(t, tr, "http://h/")
						time.Sleep(test.hint)
					}
					start, left := time.Now(), atomic.Int64{}
					left.Store(int64(test.jobs))
					var wg sync.WaitGroup
					for range 32 {
						wg.Go(func() {
							for left.Load() > 0 {
								if mustGet(t, tr, "http://h/").StatusCode == 200 {
									left.Add(-1)
								}
							}
						})
					}
					wg.Wait()
					times := time.Since(start).Seconds() / (float64(test.jobs) / test.rate)
					if sum += times; times > 2*test.most { // one run in some 400 takes 10.6 times the ideal time at a hundred a second
						t.Errorf("%.1f times the ideal time, want at most %v", times, 2*test.most)
					}
				})
			}
			if mean := sum / runs; mean > test.most {
				t.Errorf("%.1f times the ideal time in the mean, want at most %v", mean, test.most)
			}
		})
	}
}

// afterOneRefusal is a server with a bucket of a second's units that also
// refuses its sixth request.
func afterOneRefusal(hint time.Duration, rate float64) func(r *http.Request) (*http.Response, error) {
	var mu sync.Mutex
	n, tokens, last := 0, rate, time.Now()
	return func(r *http.Request) (*http.Response, error) {
		if err := testnet.Wait(r.Context(), 40*time.Millisecond); err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		tokens = min(rate, tokens+now.Sub(last).Seconds()*rate)
		last = now
		if n++; n != 6 && tokens >= 1 {
			tokens--
			return testnet.Answer(r, 200, nil, nil), nil
		}
		return testnet.Answer(r, 429, http.Header{"Retry-After": {strconv.Itoa(int(hint.Seconds()))}}, nil), nil
	}
}
