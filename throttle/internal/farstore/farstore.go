// Package farstore has a store for tests: it is in memory, but each call takes time.
package farstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Store is a store.Store in memory, each call of which takes a round trip. It can be made to
// fail, to hang, or to lose its state. In a synctest bubble a round trip takes exactly the
// time that New was given. It is safe for concurrent use.
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

// Vary returns an empty store whose round trips each take what rtt returns. Calls of rtt do
// not overlap.
func Vary(rtt func() time.Duration) *Store { return &Store{rtt: rtt, s: store.NewMemory()} }

// Fail makes every later call fail with err; nil ends that. If hang is set, calls do not
// return before their context ends.
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

// Books is how often Book was called, whether or not it failed.
func (s *Store) Books() int { return s.count(&s.books) }

// Refunds is how often Refund was called, whether or not it failed.
func (s *Store) Refunds() int { return s.count(&s.refunds) }

// Tells is how often Tell was called, whether or not it failed.
func (s *Store) Tells() int { return s.count(&s.tells) }

func (s *Store) count(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *n
}

// Asked returns the bookings that did not fail on the way, in the order of arrival.
func (s *Store) Asked() []store.Booking {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// trip takes the time of a round trip, counts the call in n, and returns the store behind.
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

// Book implements store.Store.
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

// Refund implements store.Store.
func (s *Store) Refund(ctx context.Context, r store.Refund) error {
	st, err := s.trip(ctx, &s.refunds)
	if err != nil {
		return err
	}
	return st.Refund(ctx, r)
}

// Tell implements store.Store.
func (s *Store) Tell(ctx context.Context, key string, n store.News) error {
	st, err := s.trip(ctx, &s.tells)
	if err != nil {
		return err
	}
	return st.Tell(ctx, key, n)
}
