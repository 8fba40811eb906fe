// Package limiters runs weir against the rate limiters that Go servers use,
// in this process, over loopback. Nobody tells weir the quota.
package limiters

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/weirhttp/weir/interop/real"
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
	t.Cleanup(func() { store.Close(t.Context()) })
	return m.Handle(ok)
}

func gcra(t *testing.T, quota throttled.RateQuota) http.Handler {
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

func ululeLimiter() http.Handler {
	return stdlib.NewMiddleware(limiter.New(memory.NewStore(), limiter.Rate{Period: 2 * time.Second, Limit: 20})).Handler(ok)
}

func tollboothLimiter() http.Handler {
	l := tollbooth.NewLimiter(10, nil)
	l.SetBurst(20)
	return tollbooth.LimitHandler(l, ok)
}

func TestLimiters(t *testing.T) {
	var runs []real.Run
	for i, tt := range []struct {
		name    string
		handler http.Handler
	}{
		{"sethvargo go-limiter, 20 per 2 s window", goLimiter(t)},
		{"throttled, GCRA 10 per s burst 20", gcra(t, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 19})},
		{"ulule limiter, 20 per 2 s window", ululeLimiter()},
		{"tollbooth, 10 per s burst 20", tollboothLimiter()},
	} {
		s := httptest.NewServer(tt.handler)
		t.Cleanup(s.Close)
		runs = append(runs, real.Run{
			Name: tt.name, From: real.From(1, byte(i+1)), URL: s.URL,
			Calls: 300, Ideal: 28 * time.Second, MayRefuse: 0.25,
		})
	}
	real.Together(t, runs)
}
