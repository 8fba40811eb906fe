package store

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// NewMemory returns a Store in this process's memory: several Limiters
// and Transports that are given it share their budgets. It keeps up to
// 100000 keys that are not idle; a booking beyond that fails with
// [ErrBusy]. Its errors need no network, its calls take about a
// microsecond.
func NewMemory() Store {
	return &memoryStore{ledgers: make(map[string]Ledger)}
}

// memoryKeys is how many keys the store in memory keeps: as many as a Transport or a Limiter
// does if its MaxKeys is zero.
const memoryKeys = 100000

type memoryStore struct {
	mu      sync.Mutex
	ledgers map[string]Ledger
}

func (s *memoryStore) Book(ctx context.Context, b Booking) (Booked, error) {
	if err := cmp.Or(b.Validate(), ctx.Err()); err != nil {
		return Booked{}, err
	}
	ls := make([]Ledger, len(b.Draws))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	for i, d := range b.Draws {
		l, ok := s.ledgers[d.Key]
		if !ok && len(s.ledgers) >= memoryKeys {
			return Booked{}, fmt.Errorf("store: %w: it keeps %d keys", ErrBusy, memoryKeys)
		}
		ls[i] = l
	}
	next, r := Book(now, ls, b)
	for i, l := range next {
		if l.Gen != 0 {
			s.ledgers[b.Draws[i].Key] = l
		}
	}
	return r, nil
}

func (s *memoryStore) Refund(ctx context.Context, r Refund) error {
	if err := cmp.Or(r.Validate(), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.ledgers[r.Key]; ok {
		s.ledgers[r.Key] = l.AfterRefund(time.Now(), r)
	}
	return nil
}

func (s *memoryStore) Tell(ctx context.Context, key string, n News) error {
	if err := cmp.Or(n.Validate(), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	if _, ok := s.ledgers[key]; !ok && len(s.ledgers) >= memoryKeys {
		return fmt.Errorf("store: %w: it keeps %d keys", ErrBusy, memoryKeys)
	}
	s.ledgers[key] = s.ledgers[key].AfterNews(now, n)
	return nil
}

// sweep drops idle ones among a few keys of the map's random order: with every
// new key two others are looked at, so idle keys cannot pile up.
func (s *memoryStore) sweep(now time.Time) {
	looked := 0
	for key, l := range s.ledgers {
		if l.Idle(now) {
			delete(s.ledgers, key)
		}
		if looked++; looked == 2 {
			return
		}
	}
}
