package throttle

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// TestFinerReset: a server whose window starts with its first request states
// the window's end twice: in whole seconds of the clock, rounded up, and
// exactly. Nobody waits for the roundings.
func TestFinerReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Millisecond) // just after a whole second rounding costs most
		const limit, window = 20, 2 * time.Second
		var mu sync.Mutex
		left, refused := 0, 0
		var ends time.Time
		b := newBase(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if !now.Before(ends) {
				left, ends = limit, now.Add(window)
			}
			h := http.Header{
				"Date":              {now.UTC().Format(http.TimeFormat)},
				"Retry-After":       {fmt.Sprint(float64(ends.Sub(now).Milliseconds()) / 1000)},
				"X-Ratelimit-Limit": {fmt.Sprint(limit)}, "X-Ratelimit-Reset": {fmt.Sprint(ends.Add(time.Second - 1).Unix())},
			}
			status := 200
			if left--; left < 0 {
				left, status = 0, 429
				refused++
			}
			h.Set("X-Ratelimit-Remaining", fmt.Sprint(left))
			return testnet.Answer(r, status, h, nil), nil
		})
		tr := newTransport(t, b, Config{})
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 10 {
					mustGet(t, tr, "http://a/")
				}
			})
		}
		wg.Wait()
		if took, ideal := time.Since(start), 9*window; took > ideal*11/10 || refused > 2 {
			t.Errorf("took %v with %d refusals, ideal %v", took, refused, ideal)
		}
	})
}
