package throttle_test

import (
	"math"
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
)

var (
	newBase      = testnet.NewStub
	get          = testnet.Get
	mustGet      = testnet.MustGet
	slow         = testnet.Slow
	sameTimes    = testnet.SameTimes
	newTransport = throttle.NewTestTransport
	newLimiter   = throttle.NewTestLimiter
	burst        = throttle.Burst
	police       = throttle.Police
	waiting      = throttle.Waiting
	quiet        = throttle.Quiet
	isKept       = throttle.IsKept
	isSmall      = throttle.IsSmall
	enlarge      = throttle.Enlarge
	firstPart    = throttle.FirstPart
	limiterOf    = throttle.LimiterOf
	budgetsOf    = throttle.BudgetsOf
	allowed      = throttle.Allowed

	sharedLimiters = throttle.SharedLimiters
	statsOf        = throttle.HostStatsOf
)
