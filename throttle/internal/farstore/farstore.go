// Package farstore has a store for tests, in memory but some way off.
package farstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Store is a store in memory behind a round trip, which can be cut, be busy,
// or lose its state. In a synctest bubble a round trip takes exactly as long as
// New was told.
type Store struct {
	mu                    sync.Mutex
	rtt                   func() time.Duration
	s                     store.Store
	err                   error
	hang                  bool
	books, refunds, tells int
	asked                 []store.Booking
}

// New returns an empty store that is a round trip of rtt away.
func New(rtt time.Duration) *Store { return Vary(func() time.Duration { return rtt }) }

// Vary returns an empty store whose round trips each take what rtt says. It is
// called for one at a time.
func Vary(rtt func() time.Duration) *Store { return &Store{rtt: rtt, s: store.NewMemory()} }

// Fail makes every call fail with err; nil: no longer. If hang, calls end with
// their context alone.
func (s *Store) Fail(err error, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hang = err, hang
}

// Lose makes s forget everything.
func (s *Store) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s = store.NewMemory()
}

// Books, Refunds and Tells are how often each was called.
func (s *Store) Books() int   { return s.count(&s.books) }
func (s *Store) Refunds() int { return s.count(&s.refunds) }
func (s *Store) Tells() int   { return s.count(&s.tells) }

func (s *Store) count(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *n
}

// Asked is the bookings that arrived, in their order.
func (s *Store) Asked() []store.Booking {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// trip is the way there, and counts.
func (s *Store) trip(ctx context.Context, n *int) (store.Store, error) {
	s.mu.Lock()
	*n++
	st, err, hang, rtt := s.s, s.err, s.hang, s.rtt()
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if rtt > 0 {
		t := time.NewTimer(max(1, rtt))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return st, err
}

// Book is store.Store's, as are those below.
func (s *Store) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	st, err := s.trip(ctx, &s.books)
	if err != nil {
		return store.Booked{}, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, b)
	s.mu.Unlock()
	return st.Book(ctx, b)
}

func (s *Store) Refund(ctx context.Context, r store.Refund) error {
	st, err := s.trip(ctx, &s.refunds)
	if err != nil {
		return err
	}
	return st.Refund(ctx, r)
}

func (s *Store) Tell(ctx context.Context, key string, n store.News) error {
	st, err := s.trip(ctx, &s.tells)
	if err != nil {
		return err
	}
	return st.Tell(ctx, key, n)
}
