package throttle

import (
	"slices"
	"unsafe"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
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

// learnedOf is what was learned of a host, and its domain, which is locked.
func learnedOf(tr *Transport, host string) (*learned, *queue.Domain) {
	r := homeOf(tr, host)
	e := r.lock()
	return r.learned, e
}

// LearnedKept is of how many credentials of a host tr keeps apart what it learns, and
// the most limits and kinds of request that it keeps of one.
func LearnedKept(tr *Transport, host string) (credentials, limits, kinds int) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	for _, l := range m.by {
		limits, kinds = max(limits, len(l.quotas)), max(kinds, len(l.endpoints))
	}
	return len(m.by), limits, kinds
}

// UnderWay is how many requests are under way by what each kind of request, or part of one, of the
// first credential of a host counts.
func UnderWay(tr *Transport, host string) (n []int) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	for _, k := range m.by[0].endpoints {
		n = append(n, k.slow.UnderWay())
	}
	return n
}

// ObjectsKept is how many URLs of the first credential of a host are kept that were refused.
func ObjectsKept(tr *Transport, host string) int {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	return len(m.by[0].blame.objects.by)
}

// StatesAWindow reports whether the first limit that a host stated is taken for one of
// windows, or it stated none.
func StatesAWindow(tr *Transport, host string) bool {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	quotas := m.by[0].endpoints[0].quotas
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

// PartsUnderWay is how many parts of kinds of request the first credential of a host has, and how many
// requests are under way of those that share limits with no other kind, by their places and by the
// evidence that there is.
func PartsUnderWay(tr *Transport, host string) (parts, places, evidence int) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	l := m.by[0]
	for _, k := range l.endpoints {
		if !k.isPart() || k.group == nil {
			continue
		}
		places += k.slow.UnderWay()
		if k.group.kinds[0] == k {
			evidence += k.group.evidence.UnderWay()
		}
	}
	return l.parts(), places, evidence
}

// PartsAlone is how many parts of kinds of request there are whose kind was forgotten.
func PartsAlone(tr *Transport, host string) (n int) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	l := m.by[0]
	for _, k := range l.endpoints {
		if k.isPart() && !slices.Contains(l.endpoints, k.kind()) {
			n++
		}
	}
	return n
}

// KindsCounted are the kinds of request of the first credential of a host whose parts are counted.
func KindsCounted(tr *Transport, host string) (names []string) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	for _, k := range m.by[0].endpoints {
		if k.paths != nil && k.paths.parts != nil {
			names = append(names, k.key.String())
		}
	}
	return names
}

// MostCounted is how many these are at most.
const MostCounted = mostCounted

// EvidenceUnderWay is how many requests are under way by the evidence for what all requests of the first
// credential of a host share.
func EvidenceUnderWay(tr *Transport, host string) int {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	return m.by[0].evidence.UnderWay()
}

// SharesKept is how much the first credential of a host remembers of kinds of request that draw on limits,
// or do not, and how much of that is of kinds or limits that are forgotten.
func SharesKept(tr *Transport, host string) (all, gone int) {
	m, e := learnedOf(tr, host)
	defer e.Unlock()
	l := m.by[0]
	if l.paths == nil {
		return 0, 0
	}
	for _, s := range l.paths.shares {
		if !slices.Contains(l.endpoints, s.kind) || !slices.ContainsFunc(l.quotas, func(q *quota) bool { return q.ID == s.id }) {
			gone++
		}
	}
	return len(l.paths.shares), gone
}

// Amiss is what is wrong with what tr has learned of any host, partition and credential while nothing is
// under way: what still counts as such, or as waiting, and what leads to what was forgotten.
func Amiss(tr *Transport) (wrong []string) {
	tr.each(func(r *record) {
		e := r.lock()
		defer e.Unlock()
		say := func(ok bool, what string, k *endpoint) {
			if !ok {
				if k != nil {
					what += " of " + k.name()
				}
				wrong = append(wrong, r.key+": "+what)
			}
		}
		count := map[*route]int{}
		r.learned.all(func(l *learner) {
			say(!l.waited(), "somebody waits", nil)
			say(len(l.endpoints) <= maxEndpoints && l.parts() <= mostParts, "too many kinds or parts", nil)
			l.everyFound(func(f *foundLimit) {
				say(f.evidence == nil || f.evidence.UnderWay() == 0, "evidence has some under way", nil)
				say(f.cooldown.At(e.Now()) != never, "one asks whether a pause is over", nil)
			})
			l.everyEndpoint(func(k *endpoint) {
				if k.route != nil {
					count[k.route]++
				}
				say(k.slow.UnderWay() == 0, "some are under way", k)
				say(k.cooldown.At(e.Now()) != never, "one asks whether its pause is over", k)
				say(k.asker() == nil || !k.asker().busy, "one asks for its path", k)
				say(k.bodies == 0, "bodies are read", k)
				say(!k.isPart() || slices.Contains(l.endpoints, k.kind()), "the kind is gone", k)
				for _, q := range k.quotas {
					say(slices.Contains(l.quotas, q), "a limit is gone", k)
				}
				if k.group == nil {
					return
				}
				for _, o := range k.group.kinds {
					say(o.group == k.group && (o == l.other || slices.Contains(l.endpoints, o)), "another of its group is gone", k)
				}
			})
			say(l.paths == nil || l.paths.asker == nil || !l.paths.asker.busy, "one asks for its kind", nil)
			for _, q := range l.quotas {
				for _, k := range q.endpoints {
					say(k == l.other || slices.Contains(l.endpoints, k), "a kind that a limit binds is gone", k)
				}
			}
		})
		r.beside(func(o *route) {
			say(o.entered == 0, "some are on the route "+o.name, nil)
			say(o == r.book.rest || o.endpoints == count[o], "kinds of the route "+o.name, nil)
		})
	})
	return wrong
}
