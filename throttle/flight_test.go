package throttle

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
)

// TestLimitsInFlightThatOverlapStarveNobody: one that needs a place in each of
// two limits, of which neither holds the other's requests, gets both, though
// requests that need only one keep each full all the time.
func TestLimitsInFlightThatOverlapStarveNobody(t *testing.T) {
	for _, places := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { overlap(t, places) })
	}
}

func overlap(t *testing.T, places int) {
	b := newBase(func(r *http.Request) (*http.Response, error) {
		d := 70 * time.Millisecond // the two kinds never end together
		if r.Method == "GET" {
			d = 110 * time.Millisecond
		}
		time.Sleep(d)
		return testnet.Answer(r, 200, nil, nil), nil
	})
	limit := MustParseBudget(fmt.Sprintf("%d in flight", places))
	tr := newTransport(t, b, Config{DisableLearning: true, Budgets: map[string]Budget{"POST a": limit, "a/x": limit}})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var passed atomic.Int64
	for _, c := range []struct{ method, url string }{{"GET", "http://a/x"}, {"POST", "http://a/y"}} {
		for range 3 * places {
			wg.Go(func() {
				for ctx.Err() == nil {
					r, _ := http.NewRequestWithContext(ctx, c.method, c.url, nil)
					if resp, err := tr.RoundTrip(r); err == nil {
						resp.Body.Close()
						passed.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	before := passed.Load()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a/x", nil)
	if resp, err := tr.RoundTrip(r); err != nil {
		t.Errorf("%d places: %v", places, err)
	} else {
		resp.Body.Close()
	}
	if n := passed.Load() - before; n > int64(4*mayYield*places) {
		t.Errorf("%d places: %d others went first, want at most %d", places, n, 4*mayYield*places)
	}
}
