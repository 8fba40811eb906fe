package throttle

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// What tests of both packages use. Those of throttle_test, which see no more of
// throttle than its users do, have the same names in surface_test.go.
var (
	NewTestTransport = newTransport
	NewTestLimiter   = newLimiter
	Burst            = burst
	Police           = police
	LimiterOf        = limiterOf
	BudgetsOf        = budgetsOf
	Allowed          = allowed
	SharedLimiters   = sharedLimiters
	HostStatsOf      = statsOf
	Waiting          = waiting // looks inside: whether anybody is still in a queue
	Quiet            = quiet   // these look inside, too
	IsKept           = isKept
	IsSmall          = isSmall
	Enlarge          = enlarge
	FirstPart        = firstPart
	Bearer           = bearer
)

const (
	sec      = time.Second
	mayYield = 16 // so often a waiter makes room for others
)

type base = testnet.Stub

var (
	newBase   = testnet.NewStub
	get       = testnet.Get
	mustGet   = testnet.MustGet
	slow      = testnet.Slow
	sameTimes = testnet.SameTimes
)

func newTransport(t testing.TB, b http.RoundTripper, c Config) *Transport {
	t.Helper()
	tr, err := New(b, c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func newLimiter(t testing.TB, budget string) *Limiter {
	t.Helper()
	l, err := NewLimiter(LimiterConfig{Default: MustParseBudget(budget)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
