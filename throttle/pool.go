package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	poolLooks = 16   // how many pools a newcomer may look at to make room
	mostLooks = 1024 // likewise, with what those before it have left
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
