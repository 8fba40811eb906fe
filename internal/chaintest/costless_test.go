package chaintest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// pulls is a registry that counts GETs and says with every answer how many are left. HEADs cost
// nothing, and are never refused. As Docker Hub, it does not say when more is there.
type pulls struct {
	mu      sync.Mutex
	left    int
	resets  time.Time // zero: it does not say
	refused map[string]int
}

func (p *pulls) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	p.mu.Lock()
	defer p.mu.Unlock()
	status := 200
	if r.Method == http.MethodGet {
		if p.left == 0 {
			p.refused[r.Method]++
			status = 429
		} else {
			p.left--
		}
	}
	h := http.Header{"Ratelimit-Limit": {"100;w=21600"}, "Ratelimit-Remaining": {fmt.Sprintf("%d;w=21600", p.left)}}
	if !p.resets.IsZero() {
		h.Set("RateLimit-Reset", fmt.Sprint(int(time.Until(p.resets).Seconds())))
	}
	return testnet.Answer(r, status, h, nil), nil
}

// TestWhatCostsNothingGoesOn: once nothing is left of a limit, requests of a kind that costs
// nothing of it go on, whether or not the server says when more is there.
func TestWhatCostsNothingGoesOn(t *testing.T) {
	for _, resets := range []time.Duration{0, 6 * time.Hour} {
		for _, workers := range []int{1, 8, 32} {
			t.Run(fmt.Sprint(workers, " at a time, reset in ", resets), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &pulls{left: 30, refused: map[string]int{}}
					if resets > 0 {
						server.resets = time.Now().Add(resets)
					}
					rt := must(weir.New(server, weir.Config{}))(t)
					call := func(method string, i int) bool {
						r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://h/v2/library/i%d/manifests/latest", i), nil)
						if err != nil {
							t.Fatal(err)
						}
						resp, err := rt.RoundTrip(r)
						if err != nil {
							return false
						}
						resp.Body.Close()
						return resp.StatusCode == 200
					}
					inTurn(workers, 30, func(i int) { // spends all
						call(http.MethodHead, i)
						call(http.MethodGet, i)
					})
					var wg sync.WaitGroup
					for i := range 4 { // those have to wait, or are refused
						wg.Go(func() { call(http.MethodGet, 30+i) })
					}
					start, served := time.Now(), 0
					var mu sync.Mutex
					inTurn(workers, 200, func(i int) {
						ok := call(http.MethodHead, 40+i)
						mu.Lock()
						defer mu.Unlock()
						if ok {
							served++
						}
					})
					took := time.Since(start)
					wg.Wait()
					if most := 200/time.Duration(workers)*roundTrip + 3*time.Second; served < 200 || took > most {
						t.Errorf("%d of 200 HEADs were served in %v, want all in %v", served, took, most)
					}
					if n := server.refused[http.MethodGet]; n > 12 {
						t.Errorf("%d GETs were refused, want at most 12", n)
					}
				})
			})
		}
	}
}

// inTurn calls f with 0 to n-1, so many at a time.
func inTurn(workers, n int, f func(i int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
