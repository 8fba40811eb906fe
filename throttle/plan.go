package throttle

import (
	"slices"
	"strconv"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// plan is what a budget makes of a scope: labels, and the meters to make.
type plan struct {
	budget Budget
	specs  []meter.Spec   // of the rates
	labels []*queue.Label // likewise
	flight *queue.Label   // nil: no limit in flight
}

// newPlan compiles b, which stands under pattern; route is the pattern if it
// names more than a host.
func newPlan(pattern, route string, b Budget) *plan {
	p := &plan{budget: b.clone()}
	for _, r := range p.budget.Rates {
		spec := r.spec()
		p.specs = append(p.specs, spec)
		p.labels = append(p.labels, &queue.Label{Unit: spec.Unit, Text: r.String(), Rate: meter.NewRate(spec), Pattern: pattern, Route: route})
	}
	if b.InFlight > 0 {
		p.flight = &queue.Label{Text: strconv.Itoa(b.InFlight) + " in flight", Pattern: pattern, Route: route}
	}
	return p
}

// flightOnly is p without its rates.
func (p *plan) flightOnly() *plan {
	return &plan{budget: Budget{InFlight: p.budget.InFlight}, flight: p.flight}
}

// accounts makes p's accounts. Those of old that count the same go on under the
// new labels, others of the same unit pass on what they have seen.
func (p *plan) accounts(now instant, g *queue.Group, clock *meter.Wall, old []*queue.Account) []*queue.Account {
	list := make([]*queue.Account, 0, len(p.labels)+1)
	left := slices.Clone(old)
	for _, t := range p.labels {
		a := reuse(left, t)
		if a == nil {
			m := meter.NewRated(now, t.Rate, clock)
			if o := heir(old, t); o != nil {
				m.Inherit(now, o)
			}
			a = &queue.Account{Meter: m, Label: t, Group: g}
		} else {
			a.Meter.(*meter.Rated).Change(now, t.Rate)
			a.Label = t
		}
		list = append(list, a)
	}
	if p.flight != nil {
		a := reuse(left, p.flight)
		if a == nil {
			a = &queue.Account{Meter: &meter.InFlight{}, Group: g}
		}
		a.Meter.(*meter.InFlight).Limit = int64(p.budget.InFlight)
		a.Label = p.flight
		list = append(list, a)
	}
	return list
}

// reuse takes the account out of left that counts what t does, if there is one.
func reuse(left []*queue.Account, t *queue.Label) *queue.Account {
	for i, a := range left {
		if a != nil && a.Label.Route == t.Route && a.Label.Unit == t.Unit && sameCount(a.Label.Rate, t.Rate) {
			left[i] = nil
			return a
		}
	}
	return nil
}

// sameCount reports whether a meter of s can go on as one of t.
func sameCount(s, t *meter.Rate) bool {
	if s == nil || t == nil {
		return s == t
	}
	return s.Continues(t)
}

// heir is the meter of old that remembers longest what t counts.
func heir(old []*queue.Account, t *queue.Label) *meter.Rated {
	var best *meter.Rated
	for _, a := range old {
		m, ok := a.Meter.(*meter.Rated)
		if ok && a.Label.Route == t.Route && a.Label.Unit == t.Unit && (best == nil || m.Per > best.Per) {
			best = m
		}
	}
	return best
}

// aligned reports whether a rate of b looks at the wall's clock.
func (b Budget) aligned() bool {
	return slices.ContainsFunc(b.Rates, func(r Rate) bool { return r.Align != nil })
}

const (
	// poolLooks is how many pools a newcomer may look at to make room: where more than one
	// in sixteen is idle, most newcomers find one.
	poolLooks = 16
	// mostLooks is how many it may look at with what those before it have left. The lock is
	// held meanwhile, so it is bounded.
	mostLooks = 1024
)

// poolKey names a pool's accounts.
type poolKey struct{ pool, part string }

// pooled is a pool's accounts as of some budgets.
type pooled struct {
	version  uint32
	accounts []*queue.Account
}

// pool returns the accounts of a pool for r's partition. Beyond MaxKeys of
// them that are not idle, partitions share one. The shared domain's lock is held.
func (t *Transport) pool(now instant, name string, r *record) []*queue.Account {
	k := poolKey{name, r.part}
	if t.pools[k] == nil && r.part != "" && (t.stranger(now, name, r) || len(t.pools) >= t.limits.maxKeys && !t.dropPools(now, r.part)) {
		k.part = ""
	}
	p := t.pools[k]
	if b := t.budgets.Load(); p == nil || p.version != b.version {
		next := &pooled{version: b.version}
		var old []*queue.Account
		if p != nil {
			old = p.accounts
		}
		next.accounts = b.pools[name].accounts(now, nil, &t.domains.Clock, old)
		t.pools[k] = next
		p = next
	}
	return p.accounts
}

// stranger reports whether r draws on the accounts that partitions share, and
// these are in use: with some of its own it would spend twice.
func (t *Transport) stranger(now instant, name string, r *record) bool {
	p := t.pools[poolKey{pool: name}]
	if p == nil || p.idle(now) {
		return false
	}
	return slices.ContainsFunc(r.own, func(m member) bool { return m.a == p.accounts[0] })
}

// dropPools makes room by forgetting accounts that are full and that nobody draws on
// who waits, none of part's. The records that have them get others
// when they are used.
func (t *Transport) dropPools(now instant, part string) bool {
	n := len(t.pools)
	t.looks = min(t.looks+poolLooks, mostLooks)
	for k, p := range t.pools {
		if k.part != part && (k.part != "" || t.budgets.Load().pools[k.pool] == nil) && p.idle(now) && !slices.ContainsFunc(p.accounts, t.domains.Shared.Drawn) {
			delete(t.pools, k)
		}
		if t.looks--; t.looks <= 0 {
			break
		}
	}
	if len(t.pools) == n {
		return false
	}
	next := *t.budgets.Load()
	next.version++
	t.budgets.Store(&next)
	return true
}

// idle reports whether nothing would be lost by forgetting p.
func (p *pooled) idle(now instant) bool {
	return !slices.ContainsFunc(p.accounts, func(a *queue.Account) bool { return !a.Idle(now) })
}
