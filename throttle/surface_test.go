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

	settledIn = 8  // after so many good answers a client is one of a steady flow
	maxKinds  = 64 // so many kinds of request are told apart
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
	bearer       = throttle.Bearer
	limiterOf    = throttle.LimiterOf
	budgetsOf    = throttle.BudgetsOf
	allowed      = throttle.Allowed

	sharedLimiters = throttle.SharedLimiters
	statsOf        = throttle.HostStatsOf
)
