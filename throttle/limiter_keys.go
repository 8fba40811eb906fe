package throttle

import (
	"fmt"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// subject is what a Limiter keeps of a key. It is made when the key is first
// locked: until then, and in the table's overflow entry, it has no rule.
type subject struct {
	scope
	rule *rule
	over bool // shared by keys of one rule for which there was no room
}

// lock takes the domain's lock and returns what is kept of key, which is not
// evicted before that is released.
func (l *Limiter) lock(key string) *subject {
	e := l.engine
	e.Lock()
	if h := l.hot; h != nil && h.Key == key && h.Value.version == l.rules.version.Load() {
		return &h.Value
	}
	return l.lockOther(key)
}

// lockOther is lock for a key that is not the one used last. It gives up the
// lock meanwhile: the table calls idle, which takes it.
func (l *Limiter) lockOther(key string) *subject {
	e := l.engine
	if l.hot != nil {
		l.hot.Release()
		l.hot = nil
	}
	e.Unlock()
	entry, s := l.hold(key)
	if entry.Overflow {
		entry.Release() // what the key shares there stays as long as it is not idle
		return s
	}
	if l.hot != nil {
		l.hot.Release()
	}
	l.hot = entry
	return s
}

// hold finds the place of key, takes the domain's lock and returns what is kept
// of key. The place is to be released.
func (l *Limiter) hold(key string) (*table.Entry[subject], *subject) {
	e := l.engine
	entry := l.keys.Acquire(key, time.Time{})
	version := l.rules.version.Load()
	if !entry.Overflow {
		e.Lock()
		if entry.Value.version == version {
			return entry, &entry.Value
		}
		e.Unlock()
	}
	done := false
	defer func() {
		if !done { // the user's function panicked
			entry.Release()
		}
	}()
	r := l.rules.of(key)
	done = true
	e.Lock()
	if entry.Overflow {
		l.overflowed++
		return entry, l.share(r, version)
	}
	l.renew(&entry.Value, r, version)
	return entry, &entry.Value
}

// share is what keys of r share for which there is no room. The domain's lock is held.
func (l *Limiter) share(r *rule, version uint32) *subject {
	s := l.over[r.name]
	if s == nil {
		if len(l.over) >= mostOver {
			l.forget()
		}
		if len(l.over) >= mostOver {
			r = &rule{err: fmt.Errorf("throttle: MaxKeys: %d keys with room to keep are in use, and %d budgets beyond", l.limits.maxKeys, mostOver)}
		}
		s = &subject{scope: scope{key: "others", Group: queue.Group{Gate: l.domains.NewGate()}}, over: true}
		if r.err == nil {
			l.over[r.name] = s
		}
	}
	l.renew(s, r, version)
	return s
}

// forget drops what keys without room share and nobody uses.
func (l *Limiter) forget() {
	now := l.engine.Now()
	for name, s := range l.over {
		if s.idle(now) {
			delete(l.over, name)
		}
	}
}

// renew makes the accounts of s by r, as of a version of the rules, and plans
// those anew that wait. The domain's lock is held.
func (l *Limiter) renew(s *subject, r *rule, version uint32) {
	if s.rule == r {
		s.version = version
		return
	}
	if s.rule != nil {
		defer l.redraw(s)
	}
	s.rule, s.version = r, version
	s.Gate.Group = &s.Group
	e := l.engine
	old := make([]*queue.Account, 0, len(s.own))
	for _, m := range s.own {
		old = append(old, m.a)
	}
	s.own = nil
	if r.err != nil || r.plan.budget.zero() {
		return
	}
	if n := r.plan.walls(); n > 0 && l.domains.Walls.Load() == 0 {
		l.domains.Walls.Add(int64(n))
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

// redraw plans those anew that wait for s.
func (l *Limiter) redraw(s *subject) {
	now := l.engine.Last()
	if s.Waiting > 0 {
		l.engine.Redraw(now, &s.Group)
	}
	for g := range l.joint { // of several keys, this may be one
		if g != &s.Group {
			l.engine.Redraw(now, g)
		}
	}
}

// idle reports whether nothing would be lost by forgetting s.
func (l *Limiter) idle(s *subject, _ time.Time) bool {
	l.engine.Lock()
	defer l.engine.Unlock()
	now := l.engine.Now()
	if s.rule != nil {
		return s.scope.idle(now)
	}
	for _, o := range l.over {
		if !o.scope.idle(now) {
			return false
		}
	}
	return true
}
