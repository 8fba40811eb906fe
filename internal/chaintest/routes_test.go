package chaintest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestARouteThatRefusesHoldsUpNoOther: where others are served, what one route refuses
// and says no more of is its own, until another is refused as well.
func TestARouteThatRefusesHoldsUpNoOther(t *testing.T) {
	for _, every := range []int{-1, 2, 4, 8} { // of the calls one is refused; -1: the first two
		synctest.Test(t, func(t *testing.T) {
			s := &limited{start: time.Now(), way: 20 * time.Millisecond, allow: poison}
			rt := must(weir.New(s, weir.Config{}))(t)
			for i := range 40 {
				path := fmt.Sprintf("http://h/served%d/", i%5)
				if i%every == 1 || every < 0 && i < 2 { // its end is a 429, or that it may wait no longer
					r := get(t, "http://h/v1/refused")
					rt.RoundTrip(r.WithContext(retry.With(r.Context(), retry.Override{MaxAttempts: 2})))
					continue
				}
				begin := time.Now()
				resp, err := rt.RoundTrip(get(t, path))
				if took := time.Since(begin); err != nil || resp.StatusCode != 200 || took > 100*time.Millisecond {
					t.Errorf("call %d to %s, beside a route that refuses: %v, %v after %v; want status 200 within 100ms", i, path, resp, err, took)
				}
			}
		})
	}
}

// TestADeadRouteLeavesTheOthersTheirPlaces: 503s of one route of ten, which is dead from the
// first request on, say nothing of how many requests the others may have under way.
func TestADeadRouteLeavesTheOthersTheirPlaces(t *testing.T) {
	for _, tt := range []struct {
		perSecond int
		trip      time.Duration
	}{{50, 20 * time.Millisecond}, {100, 100 * time.Millisecond}, {300, 100 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%d/s, %v away", tt.perSecond, tt.trip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				dice := rand.New(rand.NewPCG(1, 5))
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					took := time.Duration((.5 + dice.Float64()) * float64(tt.trip))
					mu.Unlock()
					if err := testnet.Wait(r.Context(), took); err != nil {
						return nil, err
					}
					if r.URL.Path == "/route0" {
						return testnet.Answer(r, 503, nil, nil), nil
					}
					return stub(r)
				}), weir.Config{}))(t)
				start := time.Now()
				var wg sync.WaitGroup
				var calls, good atomic.Int64 // to routes that work, after half a minute
				for time.Since(start) < time.Minute {
					mu.Lock()
					route, late := dice.IntN(10), time.Since(start) > 30*time.Second
					mu.Unlock()
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
						defer cancel()
						resp, err := rt.RoundTrip(get(t, fmt.Sprintf("http://h/route%d", route)).WithContext(ctx))
						if err == nil {
							resp.Body.Close()
						}
						if route > 0 && late {
							if calls.Add(1); err == nil && resp.StatusCode == 200 {
								good.Add(1)
							}
						}
					})
					time.Sleep(time.Second / time.Duration(tt.perSecond))
				}
				wg.Wait()
				if t.Logf("%d of %d served", good.Load(), calls.Load()); good.Load() < calls.Load()*95/100 {
					t.Errorf("%d of %d calls to routes that work are served, want 95 %%", good.Load(), calls.Load())
				}
			})
		})
	}
}
