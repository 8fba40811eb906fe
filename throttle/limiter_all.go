package throttle

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/store"
)

// TakeAll is Take for a call that several keys have to bear, such as a plan, a
// user and an endpoint: it waits until all of them have room for c, and spends it
// of all of them in one step, or of none. A key that is named twice bears it
// once. Its lane and its place in MaxQueue are those of the first key. With a
// Store there may be 16 keys at most.
func (l *Limiter) TakeAll(ctx context.Context, keys []string, c Cost) (g Grant, err error) {
	if len(keys) == 1 && l.fleet == nil {
		return l.Take(ctx, keys[0], c)
	}
	if err = begin(ctx, c); err != nil || len(keys) == 0 {
		return g, err
	}
	if err = l.storable(keys); err != nil {
		return g, err
	}
	if l.fleet != nil {
		err = l.takeShared(ctx, keys, c, &g)
	} else {
		err = l.takeTogether(ctx, keys, c, &g)
	}
	return g, err
}

// TryAll is TryTake for several keys, as TakeAll is Take: it spends c of all of
// them if all have room now, or nothing. The Decision is about the rate of them
// that has least left; RetryAfter is when all would have room.
func (l *Limiter) TryAll(keys []string, c Cost) (Grant, Decision) {
	switch {
	case len(keys) == 1:
		return l.TryTake(keys[0], c)
	case l.storable(keys) != nil:
		return Grant{}, Decision{RetryAfter: unknown}
	case l.fleet != nil:
		return l.tryShared(keys, c, true)
	}
	return l.tryTogether(keys, c, true)
}

// storable returns an error if a Store cannot decide on so many keys at once.
func (l *Limiter) storable(keys []string) error {
	if l.fleet != nil && len(keys) > store.MaxParts {
		return fmt.Errorf("throttle: %d keys are more than the %d that one call to a Store may name", len(keys), store.MaxParts)
	}
	return nil
}

func (l *Limiter) takeTogether(ctx context.Context, keys []string, c Cost, g *Grant) error {
	q := ask{cost: c}
	p := l.wish(ctx, &q)
	t, e := l.together(keys)
	defer t.release()
	if t.err != nil {
		defer e.Unlock()
		return t.err
	}
	t.asked(&q)
	first := q.Group
	t.join(first, 1)
	drawn, at, _, err := q.takeLocked(e, e.Now(), nil, &p)
	e = t.subjects[0].lock()
	defer e.Unlock()
	t.join(first, -1)
	if err != nil {
		return t.named(err)
	}
	for _, s := range q.more.scopes {
		s.counters.granted++
	}
	t.subjects[0].grant(g, drawn, at)
	return nil
}

func (l *Limiter) tryTogether(keys []string, c Cost, held bool) (Grant, Decision) {
	if len(keys) == 0 {
		return Grant{}, Decision{Allowed: true, Limit: int64(unknown), Remaining: int64(unknown)}
	}
	t, e := l.together(keys)
	defer t.release()
	defer e.Unlock()
	if t.err != nil {
		return Grant{}, Decision{RetryAfter: unknown}
	}
	q := ask{cost: c}
	t.asked(&q)
	s := t.subjects[0]
	d, needs, now := l.decide(e, s, &q, nil, false)
	return l.tried(e, s, &d, needs, now, held), d
}

// several is keys, held.
type several struct {
	entries  []*table.Entry[kept]
	keys     []string
	subjects []*subject // keys without room may share one
	err      error      // of the first that may not be asked
}

// together holds keys and takes the lock of their domain, which is one: keys that
// are taken together once share it for as long as they are kept.
func (l *Limiter) together(keys []string) (*several, *queue.Domain) {
	t := new(several)
	made := false
	defer func() {
		if !made { // the user's function panicked
			t.release()
		}
	}()
	for _, key := range keys {
		if slices.Contains(t.keys, key) {
			continue
		}
		entry, e, _ := l.lockHeld(key)
		e.Unlock()
		t.keys, t.entries = append(t.keys, key), append(t.entries, entry)
	}
	rules, homes := make([]*rule, len(t.keys)), make([]*queue.Domain, len(t.keys))
	version := l.rules.version.Load()
	for i, entry := range t.entries {
		if entry.Overflow {
			homes[i], rules[i] = l.domains.Shared, l.rules.of(t.keys[i])
		} else {
			homes[i] = &entry.Value.subject.Load().home
		}
	}
	e := lockJoined(homes)
	for i, entry := range t.entries {
		s := entry.Value.subject.Load()
		if entry.Overflow {
			s = l.share(e, rules[i], version)
		}
		t.subjects = append(t.subjects, s)
		if t.err == nil {
			t.err = s.rule.err
		}
	}
	made = true
	return t, e
}

// lockJoined makes one domain of all and takes its lock.
func lockJoined(all []*queue.Domain) *queue.Domain {
	for {
		e := all[0].Lock()
		if !slices.ContainsFunc(all, func(d *queue.Domain) bool { return !e.Is(d) }) {
			return e
		}
		e.Unlock()
		for _, d := range all[1:] {
			queue.Join(all[0], d)
		}
	}
}

// join notes at the keys besides the first that n more requests of g, the group of
// that one, wait for them.
func (t *several) join(g *queue.Group, n int) {
	for _, s := range t.subjects[1:] {
		if &s.Group == g {
			continue // keys without room share it
		}
		if s.joint == nil {
			s.joint = make(map[*queue.Group]int)
		}
		if s.joint[g] += n; s.joint[g] == 0 {
			if delete(s.joint, g); len(s.joint) == 0 {
				s.joint = nil
			}
		}
	}
}

func (t *several) release() {
	for _, e := range t.entries {
		e.Release()
	}
}

// asked makes q one that draws on all keys.
func (t *several) asked(q *ask) {
	q.to(&t.subjects[0].scope)
	q.more = new(others)
	for _, s := range t.subjects[1:] {
		q.more.scopes = append(q.more.scopes, &s.scope)
	}
}

// named gives a refusal the key that it is for.
func (t *several) named(err error) error {
	if e, ok := err.(*Error); ok {
		e.Key = t.keys[0]
		for i, s := range t.subjects {
			if e.group == &s.Group {
				e.Key = t.keys[i]
			}
		}
	}
	return err
}

// shared is what keys draw on in the store. Rates are the key's own: two
// processes that configure a key differently share what they name alike.
func (l *Limiter) shared(keys []string) (list []fleet.Key, err error) {
	for _, key := range keys {
		e, s := l.lock(key)
		drawn, err := s.shared(key), s.rule.err
		e.Unlock()
		if err != nil {
			return nil, err
		}
		if len(keys) == 1 {
			return drawn, nil
		}
		if !slices.ContainsFunc(list, func(k fleet.Key) bool { return k.ID == key }) {
			list = append(list, drawn...)
		}
	}
	return list, nil
}

// shared is what key, of which s is kept, draws on in the Store. Its lock is held.
func (s *subject) shared(key string) []fleet.Key {
	switch {
	case s.rule.err != nil:
		return nil
	case s.over:
		return s.rule.shared(key)
	case s.drawn == nil:
		s.drawn = s.rule.shared(key)
	}
	return s.drawn
}

func (r *rule) shared(key string) []fleet.Key {
	return []fleet.Key{{ID: key, Name: key, Rates: r.plan.specs, InFlight: r.plan.budget.InFlight}}
}

// needs appends what q draws on of keys besides the first, pauses by hand
// included. Keys without room may share an account, of which it draws for each.
func (o *others) needs(buf []queue.Need, q *ask) []queue.Need {
	for _, s := range o.scopes {
		if s != q.scope {
			buf = append(buf, queue.Need{Account: &s.Gate, N: 1})
		}
		for _, m := range s.own {
			if d := queue.Of(buf, m.a); d != nil {
				d.N += q.of(m.a)
				continue
			}
			buf = append(buf, queue.Need{Account: m.a, N: q.of(m.a)})
		}
	}
	return buf
}
