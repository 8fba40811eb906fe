package throttle_test

import (
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

// hiccup refuses one request of all, though nobody asks for much.
type hiccup struct {
	at   int64 // the one, from 1
	hint string
	n    atomic.Int64
}

func (h *hiccup) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(50 * time.Millisecond)
	if h.n.Add(1) != h.at {
		return testnet.Answer(r, 200, nil, http.NoBody), nil
	}
	header := http.Header{}
	if h.hint != "" {
		header.Set("Retry-After", h.hint)
	}
	return testnet.Answer(r, http.StatusTooManyRequests, header, http.NoBody), nil
}

// The pace of a client with little to ask is not the rate of its server: once
// refused, it goes on as before, and may ask for more.
func TestAnIdleClientsPaceIsNoRate(t *testing.T) {
	for _, hint := range []string{"1", ""} {
		for _, apart := range []time.Duration{30 * time.Second, 133 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprint(hint, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tr := newTransport(t, &hiccup{at: 21, hint: hint}, throttle.Config{})
					get := func() (status int, waited time.Duration) {
						r, err := http.NewRequest("GET", "http://a/", nil)
						if err != nil {
							t.Fatal(err)
						}
						begin := time.Now()
						resp, err := tr.RoundTrip(r)
						if err != nil {
							t.Error(err)
							return 0, 0
						}
						return resp.StatusCode, time.Since(begin)
					}
					for i := range 21 {
						if i > 0 {
							time.Sleep(apart)
						}
						get()
					}
					most, n := time.Minute, 2
					if hint != "" { // which tells the least rate there is
						most, n = 30*time.Second, 8
					}
					for range 5 {
						var wg sync.WaitGroup
						for range n {
							wg.Go(func() {
								if _, waited := get(); waited > most+time.Second {
									t.Errorf("one of %d at once waited for %v", n, waited)
								}
							})
						}
						wg.Wait()
						time.Sleep(apart)
					}
				})
			})
		}
	}
}
