package throttle

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// subject is what is kept of a key that is not small, and of what keys share for
// which there is no room. Until renew it has no rule.
type subject struct {
	home queue.Domain // see lock
	scope
	rule  *rule
	first *queue.Account       // on which the key's grants drew while it was small; nil: it never was
	joint map[*queue.Group]int // groups of other keys, of which so many wait for this one too; nil: none

	drawn []fleet.Key    // what rule draws on in the Store; nil: not asked for yet, or over
	word  *atomic.Uint64 // of the newest grants; nil: none yet
	flags uint8          // bits of word that grants have
	over  bool           // shared by keys of one rule for which there was no room
}

// lock takes the lock of s's domain. That is its own until s is taken together
// with other keys: then they share one. What keys without room share is in the
// shared domain.
func (s *subject) lock() *queue.Domain { return s.home.Lock() }

// lock returns what is kept of key, which is not small from then on, and takes its
// domain's lock, until which is given up it is not dropped.
func (l *Limiter) lock(key string) (*queue.Domain, *subject) {
	k, e, s := l.meet(key, false)
	if s == nil {
		return k.grow(l.domains, key)
	}
	return e, s
}

// meet is lock for one who can do with a small key: then it is locked, and there is
// no subject. Of keys for which there is no room there is only that. If patient, and
// somebody waits for key already, nothing is locked, and all three are nil.
func (l *Limiter) meet(key string, patient bool) (*kept, *queue.Domain, *subject) {
	entry, hash := l.keys.Near(key), uint64(0)
	if entry == nil {
		entry, hash = l.keys.Search(key)
	}
	known := entry != nil
	if !known {
		entry = l.keys.AcquireNew(key, hash, time.Time{})
	} else {
		k := &entry.Value
		if patient && k.waits() {
			return nil, nil, nil
		}
		e, s := k.lock()
		if k.asOf(s) == l.rules.version.Load() && entry.Visit() {
			return k, e, s
		}
		k.unlock(e)
		entry = l.keys.Acquire(key, time.Time{})
	}
	k, e, s := l.meetHeld(key, entry, known)
	entry.Release() // whoever wants to drop it takes the lock first, to ask whether it is idle
	return k, e, s
}

// lockHeld is lock of a key whose place is held. The place is to be released.
func (l *Limiter) lockHeld(key string) (*table.Entry[kept], *queue.Domain, *subject) {
	entry := l.keys.Acquire(key, time.Time{})
	k, e, s := l.meetHeld(key, entry, true)
	if s == nil {
		e, s = k.grow(l.domains, key)
	}
	return entry, e, s
}

// meetHeld is meet of a key whose place, entry, the caller holds. If it panics, it releases that.
// Only a key that is known may have what the newest rules say.
func (l *Limiter) meetHeld(key string, entry *table.Entry[kept], known bool) (*kept, *queue.Domain, *subject) {
	version := l.rules.version.Load()
	k := &entry.Value
	if known && !entry.Overflow {
		e, s := k.lock()
		if k.asOf(s) == version {
			return k, e, s
		}
		k.unlock(e)
	}
	done := false
	defer func() {
		if !done { // the user's function panicked
			entry.Release()
		}
	}()
	r := l.rules.of(key)
	done = true
	if entry.Overflow {
		l.overflowed.Add(1)
		e := l.domains.Shared.Lock()
		return nil, e, l.share(e, r, version)
	}
	e, s := k.lock()
	switch {
	case s != nil:
	case k.rule == r:
		k.version = version
		return k, nil, nil
	case k.rule == nil && l.fleet == nil && r.small != nil:
		k.begin(r, version)
		return k, nil, nil
	default:
		e, s = k.grow(l.domains, key)
	}
	l.renew(e, s, r, version)
	return k, e, s
}

// share is what keys of r share for which there is no room. e is the shared domain,
// locked.
func (l *Limiter) share(e *queue.Domain, r *rule, version uint32) *subject {
	s := l.over[r.name]
	if s == nil {
		if len(l.over) >= mostOver {
			l.forget(e)
		}
		if len(l.over) >= mostOver {
			r = &rule{err: fmt.Errorf("throttle: MaxKeys: all %d keys are in use, and keys with %d other budgets share their accounts; there is no room for a further budget", l.limits.maxKeys, mostOver)}
		}
		s = &subject{scope: scope{key: "others", Group: queue.Group{Gate: l.domains.NewGate()}}, over: true}
		l.domains.Share(&s.home)
		if r.err == nil {
			l.over[r.name] = s
		}
	}
	l.renew(e, s, r, version)
	return s
}

// forget drops what keys without room share and nobody uses.
func (l *Limiter) forget(e *queue.Domain) {
	now := e.Now()
	for name, s := range l.over {
		if s.idle(now) {
			delete(l.over, name)
		}
	}
}

// renew makes the accounts of s by r, as of a version of the rules, and plans
// those anew that wait. e is its domain, locked.
func (l *Limiter) renew(e *queue.Domain, s *subject, r *rule, version uint32) {
	if s.rule == r {
		s.version = version
		return
	}
	if s.rule != nil {
		defer s.redraw(e)
	}
	s.rule, s.version, s.drawn = r, version, nil
	s.Gate.Group = &s.Group
	old := make([]*queue.Account, 0, len(s.own))
	for _, m := range s.own {
		old = append(old, m.a)
	}
	s.own = nil
	if r.err != nil || r.plan.budget.zero() {
		return
	}
	if r.plan.budget.aligned() {
		l.domains.Walls.Store(true)
	}
	now, p := e.Now(), r.plan
	if s.over && l.fleet != nil { // rates are the Store's to keep, each key's own
		p = p.flightOnly()
	}
	accounts := p.accounts(now, &s.Group, &l.domains.Clock, old)
	s.own = make([]member, len(accounts))
	for i, a := range accounts {
		s.own[i].a = a
	}
	s.rest(now, s.Gate.Paused, false)
}

// redraw plans those anew that wait for s, which is locked.
func (s *subject) redraw(e *queue.Domain) {
	now := e.Last()
	if s.Waiting > 0 {
		e.Redraw(now, &s.Group)
	}
	for g := range s.joint {
		e.Redraw(now, g)
	}
}

// idle reports whether nothing would be lost by forgetting k.
func (l *Limiter) idle(k *kept, _ time.Time) (idle bool) {
	e, s := k.lock()
	made := true
	switch {
	case s != nil:
		idle = s.scope.idle(e.Now())
	case k.rule != nil:
		idle = k.meter.State(k.now()).Idle
	default:
		made = false
	}
	k.unlock(e)
	if made {
		return idle
	}
	e = l.domains.Shared.Lock()
	defer e.Unlock()
	for _, o := range l.over {
		if !o.scope.idle(e.Now()) {
			return false
		}
	}
	return true
}
