package throttle

import (
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// LimiterStats is a copy of what a Limiter knows.
type LimiterStats struct {
	// Keys are those that are kept, in no order, each as the host of a
	// [Transport] is described: Host is the key. What has to do with answers is
	// zero. Those that share an account, as there was no room, have Overflow set.
	Keys []HostStats

	// Overflow is the number of calls of keys for which there was no room. More
	// than a few say that MaxKeys is too small: without a Store these keys are
	// refused for what others spent.
	Overflow int64
}

// Stats returns a copy of the Limiter's state. It looks at one key at a time and
// holds nobody up for longer.
func (l *Limiter) Stats() LimiterStats {
	s := LimiterStats{Keys: make([]HostStats, 0, l.keys.Len())}
	l.keys.All(func(entry *table.Entry[kept]) {
		if !entry.Overflow {
			if h, ok := entry.Value.stats(l.domains, entry.Key); ok {
				s.Keys = append(s.Keys, h)
			}
			return
		}
		e := l.domains.Shared.Lock()
		defer e.Unlock()
		now := e.Now()
		for _, o := range l.over {
			h := o.stats(now, "others")
			h.Overflow = true
			s.Keys = append(s.Keys, h)
		}
		s.Overflow = l.overflowed.Load()
	})
	return s
}

// stats describes k; ok is false if it was not used yet.
func (k *kept) stats(in *queue.Domains, key string) (h HostStats, ok bool) {
	e, s := k.lock()
	defer k.unlock(e)
	switch {
	case s != nil && s.rule != nil:
		return s.stats(e.Now(), key), true
	case s == nil && k.rule != nil:
		return k.full(in, key).stats(k.now(), key), true
	}
	return h, false
}

// stats describes s. The domain's lock is held.
func (s *subject) stats(now instant, key string) HostStats {
	h := HostStats{Host: key, State: StateOK, Queue: int(s.Waiting)}
	s.budgets(now, &h, &s.Gate, nil)
	s.counters.addTo(&h.Counts)
	if s.counters.rest != nil {
		h.Pauses += s.counters.rest.byHand
	}
	if s.Waiting > 0 {
		h.OldestWait = time.Duration(now - s.Oldest().Since)
		if h.State == StateOK {
			h.State = StateWaiting
		}
	}
	if s.counters.refusing(now, int(s.Waiting)) {
		h.State = StateRefusing
	}
	return h
}
