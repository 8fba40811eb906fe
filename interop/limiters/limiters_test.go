// Package limiters runs weir against the rate limiters that Go servers use, in
// this process and, where their clock allows, in virtual time. Nobody tells weir the quota.
package limiters

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/throttle"
)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })

func goLimiter(t *testing.T) http.Handler {
	store, err := memorystore.New(&memorystore.Config{Tokens: 20, Interval: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m, err := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(context.Background()) })
	return m.Handle(ok)
}

func gcra(quota throttled.RateQuota) func(t *testing.T) http.Handler {
	return func(t *testing.T) http.Handler {
		store, err := memstore.NewCtx(1000)
		if err != nil {
			t.Fatal(err)
		}
		l, err := throttled.NewGCRARateLimiterCtx(store, quota)
		if err != nil {
			t.Fatal(err)
		}
		return (&throttled.HTTPRateLimiterCtx{RateLimiter: l, VaryBy: &throttled.VaryBy{RemoteAddr: true}}).RateLimit(ok)
	}
}

func ululeLimiter(*testing.T) http.Handler {
	l := limiter.New(memory.NewStore(), limiter.Rate{Period: 2 * time.Second, Limit: 20})
	return stdlib.NewMiddleware(l).Handler(ok)
}

func tollboothLimiter(rate float64, burst int) func(*testing.T) http.Handler {
	return func(*testing.T) http.Handler {
		l := tollbooth.NewLimiter(rate, nil)
		l.SetBurst(burst)
		return tollbooth.LimitHandler(l, ok)
	}
}

// TestLimiters: each refuses at most one call in twenty and costs little more
// time than it must.
func TestLimiters(t *testing.T) {
	patient := weir.Config{Throttle: throttle.Config{MaxWait: time.Hour}}
	for _, tt := range []struct {
		name    string
		handler func(*testing.T) http.Handler
		run     real.Run
		mayLast float64 // times the ideal
	}{
		{"throttled, GCRA 10 per s burst 20", gcra(throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 19}),
			real.Run{Calls: 300, Ideal: 28 * time.Second, MayRefuse: real.OneInTwenty}, 1.1},
		{"throttled, GCRA 20 per min burst 2", gcra(throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 1}),
			real.Run{Config: patient, Calls: 60, Ideal: 174 * time.Second, MayRefuse: real.OneInTwenty}, 1.1},
		{"ulule limiter, 20 per 2 s window", ululeLimiter,
			real.Run{Calls: 300, Ideal: 28 * time.Second, MayRefuse: real.OneInTwenty}, 1.1},
		{"tollbooth, 10 per s burst 20", tollboothLimiter(10, 20),
			real.Run{Calls: 300, Ideal: 28 * time.Second, MayRefuse: real.OneInTwenty}, 1.1},
		// It states a limit of 0 that resets in 1 s, with every answer.
		{"tollbooth, 2 per 5 s burst 1", tollboothLimiter(0.4, 1),
			real.Run{Config: patient, Calls: 60, Ideal: 147500 * time.Millisecond, MayRefuse: 0.25}, 1.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.handler(t) // some start goroutines for good: not in the bubble
			synctest.Test(t, func(t *testing.T) {
				base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(5 * time.Millisecond)
					h.ServeHTTP(w, r)
				}), false)
				defer stop()
				run := tt.run
				run.Name, run.From, run.URL = tt.name, base, "http://limiter.test/"
				got := run.Alone(t)
				if n := got.Took.Seconds() / run.Ideal.Seconds(); n > tt.mayLast {
					t.Errorf("%.2f times the ideal, more than %v", n, tt.mayLast)
				}
			})
		})
	}
}

// TestGoLimiter: sethvargo's reads a clock that no bubble changes.
func TestGoLimiter(t *testing.T) {
	s := httptest.NewServer(goLimiter(t))
	defer s.Close()
	real.Together(t, []real.Run{{
		Name: "sethvargo go-limiter, 20 per 2 s window", From: real.From(1, 1), URL: s.URL,
		Calls: 300, Ideal: 28 * time.Second, MayRefuse: real.OneInTwenty,
	}})
}
