package throttle_test

import (
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

type base = testnet.Stub

const (
	sec      = time.Second
	requests = "requests"
	share    = 8  // of so many grants one is a lower class's
	mayYield = 16 // so often a waiter makes room for others
	unknown  = time.Duration(math.MaxInt64)

	settledIn = 8  // after so many good answers a client is one of a steady flow
	maxKinds  = 64 // so many kinds of request are told apart
)

var (
	newBase   = testnet.NewStub
	get       = testnet.Get
	mustGet   = testnet.MustGet
	slow      = testnet.Slow
	sameTimes = testnet.SameTimes
	waiting   = throttle.Waiting
	quiet     = throttle.Quiet
	isKept    = throttle.IsKept
	isSmall   = throttle.IsSmall
	enlarge   = throttle.Enlarge
)

func newTransport(t testing.TB, b http.RoundTripper, c throttle.Config) *throttle.Transport {
	t.Helper()
	tr, err := throttle.New(b, c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func newLimiter(t testing.TB, budget string) *throttle.Limiter {
	t.Helper()
	return limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget(budget)})
}

// police is a context whose requests never wait.
func police(t *testing.T) context.Context { return throttle.WithMaxWait(t.Context(), -1) }

// burst takes single units until one is refused, at most n.
func burst(t *testing.T, l *throttle.Limiter, n int) (taken int) {
	for taken < n && l.Try("k", nil).Allowed {
		taken++
	}
	return taken
}
