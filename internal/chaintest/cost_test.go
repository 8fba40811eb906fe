package chaintest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestHugeCostsMakeNoRoom: a cost or a settlement larger than any limit is refused
// or paid off. It never overflows into room for more.
func TestHugeCostsMakeNoRoom(t *testing.T) {
	for _, budget := range []string{"100 tokens/s", "2 tokens/s bucket 40", "100000 tokens/d burst 100000", fmt.Sprint(math.MaxInt, " tokens/h")} {
		for _, huge := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2, 1 << 53, 1e12} {
			t.Run(fmt.Sprintf("%s, cost %d", budget, huge), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { hugeCost(t, budget, huge) })
				synctest.Test(t, func(t *testing.T) { hugeSettlement(t, budget, huge) })
			})
		}
	}
}

func hugeCost(t *testing.T, budget string, huge int64) {
	rt := must(weir.New(testnet.Func(stub), weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget(budget)}}))(t)
	granted := int64(0)
	for range 5 {
		resp, err := rt.RoundTrip(costing(t, huge))
		if err == nil {
			resp.Body.Close()
			granted++
		}
	}
	if limit := throttle.MustParseBudget(budget).Rates[0]; granted > 1 && float64(granted)*float64(huge) > float64(limit.Limit)*1.01 {
		t.Errorf("%d requests of cost %d were granted under %s, which is more than it allows", granted, huge, budget)
	}
}

func hugeSettlement(t *testing.T, budget string, huge int64) {
	rt := must(weir.New(testnet.Func(stub), weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget(budget)}}))(t)
	limit := throttle.MustParseBudget(budget).Rates[0].Limit
	if huge < int64(limit) {
		return
	}
	for range 3 {
		resp, err := rt.RoundTrip(costing(t, 1))
		if err != nil {
			break
		}
		throttle.Settle(resp, throttle.Cost{"tokens": huge})
		resp.Body.Close()
	}
	var e *throttle.Error
	resp, err := rt.RoundTrip(costing(t, min(int64(limit), 1<<40)))
	if err == nil && huge > 1e13 {
		resp.Body.Close()
		t.Errorf("a request was granted after a settlement of %d, want it refused", huge)
	}
	if err != nil && (!errors.As(err, &e) || e.RetryAfter < 0) {
		t.Errorf("%v", err)
	}
	for _, h := range rt.Stats().Throttle.Hosts {
		for _, b := range h.Budgets {
			if b.FullIn < 0 || math.IsNaN(b.Left) || b.Left > float64(b.Limit)*1.01 {
				t.Errorf("%+v", b)
			}
		}
	}
}

func costing(t *testing.T, n int64) *http.Request {
	return get(t, "http://h/").WithContext(throttle.WithCost(t.Context(), throttle.Cost{"tokens": n}))
}

// TestAGrantIsSettledOnce: a grant is settled once, whenever and however often
// that is tried, and foreign responses are an error.
func TestAGrantIsSettledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(stub), weir.Config{Throttle: throttle.Config{
			Default: throttle.MustParseBudget("100 tokens/m burst 100, 4 in flight"),
		}}))(t)
		left := func() float64 { return rt.Stats().Throttle.Hosts[0].Budgets[0].Left }
		send := func() *http.Response { return must(rt.RoundTrip(costing(t, 10)))(t) }
		resp := send()
		for i := range 3 {
			if err := throttle.Settle(resp, throttle.Cost{"tokens": 20}); (err == nil) != (i == 0) {
				t.Errorf("settlement %d: %v", i, err)
			}
		}
		resp.Body.Close()
		if got := left(); got != 80 {
			t.Errorf("%v left, want 80", got)
		}
		late := send()
		late.Body.Close()
		if err := throttle.Settle(late, throttle.Cost{"tokens": 0}); err == nil {
			t.Error("settled after the body was closed")
		}
		if got := left(); got != 70 {
			t.Errorf("%v left, want 70", got)
		}
		for name, foreign := range map[string]*http.Response{
			"nil": nil, "no request": {}, "another's": {Request: get(t, "http://h/")},
		} {
			if throttle.Settle(foreign, throttle.Cost{"tokens": 0}) == nil {
				t.Errorf("%s: settled", name)
			}
		}
		if got := left(); got != 70 {
			t.Errorf("%v left, want 70", got)
		}
	})
}

// TestACancelledRequestLeavesNothingBehind: a request given up at any moment costs at most
// what it drew, and nothing waits or is in flight afterwards.
func TestACancelledRequestLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			n++
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			switch n % 4 {
			case 0:
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, testnet.NewBody("no")), nil
			case 1:
				return testnet.Answer(r, 502, nil, testnet.NewBody("no")), nil
			}
			return stub(r)
		})
		rt := must(weir.New(base, weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("2/s burst 1, 1 in flight")}}))(t)
		for i := range 60 {
			at := time.Duration(i)*50*time.Millisecond + 1
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(max(1, at), cancel)
			start := time.Now()
			resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
			switch {
			case err == nil:
				resp.Body.Close()
			case !errors.Is(err, context.Canceled):
				t.Errorf("after %v: %v", time.Since(start), err)
			case time.Since(start) != at:
				t.Errorf("a request cancelled after %v returned after %v", at, time.Since(start))
			}
			stop.Stop()
			cancel()
		}
		synctest.Wait()
		for _, h := range rt.Stats().Throttle.Hosts {
			if h.Queue != 0 || h.InFlight != 0 {
				t.Errorf("%+v", h)
			}
			for _, b := range h.Budgets {
				if b.Unit == "" && b.Left != 1 {
					t.Errorf("a place in flight was lost: %+v", b)
				}
			}
		}
	})
}
