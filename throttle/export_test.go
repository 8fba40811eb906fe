package throttle

import (
	"unsafe"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// What tests of package throttle_test, which see no more of throttle than its users
// do, cannot see otherwise. What these return or do stands beside them, in
// inside_test.go.
var (
	Waiting = waiting
	Quiet   = quiet
	IsKept  = isKept
	IsSmall = isSmall
	Enlarge = enlarge
)

// Jitter makes tr draw by lot from f, so that a run can be repeated.
func Jitter(tr *Transport, f func() float64) { tr.learning.jitter = f }

// KeysKept is how many keys l keeps for themselves, and how many accounts the others share.
func KeysKept(l *Limiter) (own, shared int) { return l.keys.Len(), len(l.over) }

// BudgetsKept is how many budgets that LimiterConfig.Budget said l keeps.
func BudgetsKept(l *Limiter) int { return len(l.rules.said) }

// PoolsKept is how many partitions of pools tr keeps.
func PoolsKept(tr *Transport) int { return len(tr.pools) }

// LearnedKept is of how many credentials of a host tr keeps apart what it learns, and
// the most limits and kinds of request that it keeps of one.
func LearnedKept(tr *Transport, host string) (credentials, limits, kinds int) {
	m := homeOf(tr, host).learned
	for _, l := range m.by {
		limits, kinds = max(limits, len(l.quotas)), max(kinds, len(l.endpoints))
	}
	return len(m.by), limits, kinds
}

// UnderWay is how many requests are under way by what each kind of request, or part of one, of the
// first credential of a host counts.
func UnderWay(tr *Transport, host string) (n []int) {
	for _, k := range homeOf(tr, host).learned.by[0].endpoints {
		n = append(n, k.slow.UnderWay())
	}
	return n
}

// ObjectsKept is how many URLs of the first credential of a host are kept that were refused.
func ObjectsKept(tr *Transport, host string) int {
	return len(homeOf(tr, host).learned.by[0].blame.objects.by)
}

// StatesAWindow reports whether the first limit that a host stated is taken for one of
// windows, or it stated none.
func StatesAWindow(tr *Transport, host string) bool {
	r := homeOf(tr, host)
	e := r.lock()
	defer e.Unlock()
	quotas := r.learned.by[0].endpoints[0].quotas
	return len(quotas) == 0 || quotas[0].Facts(e.Now()).Kind == refill.Window
}

// What is kept at most.
const (
	MostOver        = mostOver
	MostSaid        = mostSaid
	MostQuotas      = maxQuotas
	MostKinds       = maxEndpoints
	MostObjects     = mostObjects
	MostCredentials = maxCredentials
	MostRoutes      = maxRoutes
	Counted         = counted    // Stats counts so many that wait without giving up the lock
	ForgetRate      = forgetRate // for so long a limit is believed that nothing bears out
)

// What a request and a key of a Limiter take, in bytes.
const (
	AttemptSize = unsafe.Sizeof(firstAttempt{})
	KeySize     = unsafe.Sizeof(table.Entry[kept]{})
)
