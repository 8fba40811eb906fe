package throttle

import (
	"fmt"
	"strconv"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// SetBudget changes the budget of a key, or of a pattern of keys as in
// LimiterConfig.Budgets, or adds one. Everyone queued is planned anew at once;
// what was spent stays spent, pauses and places in flight go on. The zero Budget
// lifts the limits of what it names. LimiterConfig.Budget is asked again for the
// keys that are used after it.
func (l *Limiter) SetBudget(pattern string, b Budget) error {
	several, err := l.rules.set("SetBudget "+strconv.Quote(pattern), pattern, b)
	if err != nil {
		return err
	}
	if !several {
		if entry := l.keys.Find(pattern); entry != nil {
			l.refresh(entry)
			entry.Release()
		}
		return nil
	}
	l.keys.All(l.refresh)
	return nil
}

// refresh brings what is kept of a key up to date, if anybody waits for it.
// Others are when they are used.
func (l *Limiter) refresh(entry *table.Entry[kept]) {
	if entry.Overflow {
		e := l.domains.Shared.Lock()
		defer e.Unlock()
		for _, s := range l.over {
			if r := l.rules.again(s.rule); r != nil {
				l.renew(e, s, r, l.rules.version.Load())
			}
		}
		return
	}
	s := entry.Value.subject.Load()
	if s == nil {
		return
	}
	e := s.lock()
	waits := s.Waiting > 0 || len(s.joint) > 0
	made := s.rule != nil
	e.Unlock()
	if !waits || !made {
		return
	}
	version := l.rules.version.Load()
	r := l.rules.of(entry.Key)
	e = s.lock()
	defer e.Unlock()
	l.renew(e, s, r, version)
}

// again is what became of the rule of a pattern; nil: there is none of its name.
func (r *rules) again(old *rule) *rule {
	if old.pattern == "" {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if found := r.exact[old.pattern]; found != nil {
		return found
	}
	for i := range r.globs {
		if r.globs[i].rule.pattern == old.pattern {
			return r.globs[i].rule
		}
	}
	return nil
}

// Refill gives key units by hand: as if as many of those spent, the oldest, had
// not been. No rate holds more than all of it by that. Those that wait go at once
// as far as there is room then. Places in flight are not units. With a Store it
// waits for a call to it, and gives the units to all processes together; what
// another process has spent itself still counts in that one.
func (l *Limiter) Refill(key string, c Cost) error {
	if err := c.check(); err != nil {
		return err
	}
	return l.fill(key, func(unit string) int64 { return c.of(unit) })
}

// Reset is Refill of everything: what key has spent is forgotten. A pause goes on,
// and so do places in flight.
func (l *Limiter) Reset(key string) error {
	return l.fill(key, func(string) int64 { return int64(unknown) })
}

// fill gives key as many units as of says of each.
func (l *Limiter) fill(key string, of func(unit string) int64) error {
	e, s := l.lock(key)
	r := s.rule
	if r.err == nil {
		now := e.Now()
		for _, m := range s.own {
			if rated, ok := m.a.Meter.(*meter.Rated); ok {
				rated.Refill(now, of(m.a.Label.Unit))
				e.Mark(m.a)
			}
		}
		s.rest(now, s.Gate.Paused, false)
		e.Run(now)
	}
	e.Unlock()
	if r.err != nil || l.fleet == nil {
		return r.err
	}
	if err := l.fleet.Refill(r.shared(key)[0], of); err != nil {
		return fmt.Errorf("throttle: %s: refill: %w", key, err)
	}
	return nil
}

// BudgetOf is the budget of a key as it is now: what Budgets, Budget or Default
// say, or SetBudget said. The error is the one Take would return if what Budget
// says is no budget.
func (l *Limiter) BudgetOf(key string) (Budget, error) {
	r := l.rules.of(key)
	if r.err != nil {
		return Budget{}, r.err
	}
	return r.plan.budget.clone(), nil
}
