package storetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/store"
	"github.com/weirhttp/weir/throttle/storetest"
)

func memory() storetest.Setup {
	s := store.NewMemory()
	return storetest.Setup{Stores: []store.Store{s, s}, Advance: time.Sleep, Now: time.Now}
}

func TestMemoryStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := storetest.Test(memory); err != nil {
			t.Error(err)
		}
		if err := storetest.Histories(context.Background(), memory(), 2, 20000); err != nil {
			t.Error(err)
		}
	})
}

// kept is a store of ledgers that a test can put back, in another era.
type kept struct {
	mu      sync.Mutex
	era     int64
	ledgers map[string]store.Ledger
	forgets bool // that it was put back
}

func (s *kept) of(key string) store.Ledger {
	l := s.ledgers[key]
	if !s.forgets {
		l.Era = s.era
	}
	return l
}

func (s *kept) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	if err := errors.Join(b.Validate(), ctx.Err()); err != nil {
		return store.Booked{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ls []store.Ledger
	for _, d := range b.Draws {
		ls = append(ls, s.of(d.Key))
	}
	next, r := store.Book(time.Now(), ls, b)
	for i, l := range next {
		s.ledgers[b.Draws[i].Key] = l
	}
	return r, nil
}

func (s *kept) Refund(_ context.Context, r store.Refund) error {
	if err := r.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledgers[r.Key] = s.of(r.Key).AfterRefund(time.Now(), r)
	return nil
}

func (s *kept) Tell(_ context.Context, key string, n store.News) error {
	if err := n.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledgers[key] = s.of(key).AfterNews(time.Now(), n)
	return nil
}

func (s *kept) setup() storetest.Setup {
	s.era, s.ledgers = 5, make(map[string]store.Ledger)
	return storetest.Setup{
		Stores: []store.Store{s, s}, Advance: time.Sleep, Now: time.Now,
		Lose: func() { clear(s.ledgers); s.era++ },
		Era:  func() int64 { return s.of("").Era },
		Save: func() func() {
			saved := maps.Clone(s.ledgers)
			return func() { s.ledgers, s.era = maps.Clone(saved), s.era+1 }
		},
	}
}

func TestStoreThatIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := storetest.Test(new(kept).setup); err != nil {
			t.Error(err)
		}
		if err := storetest.Histories(t.Context(), new(kept).setup(), 3, 20000); err != nil {
			t.Error(err)
		}
		err := storetest.Test((&kept{forgets: true}).setup)
		for _, check := range []string{"a restored state is healed", "a refund of what a restored state does not know"} {
			if err == nil || !strings.Contains(err.Error(), check) {
				t.Errorf("a store that does not notice that it was put back: got %v, want a failure of %q", err, check)
			}
		}
	})
}

// broken is a store with one fault.
type broken struct {
	store.Store
	book   func(s store.Store, b store.Booking) (store.Booked, error)
	refund func(s store.Store, r store.Refund) error
	tell   func(s store.Store, key string, n store.News) error
}

func (s broken) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	if s.book == nil || ctx.Err() != nil {
		return s.Store.Book(ctx, b)
	}
	return s.book(s.Store, b)
}

func (s broken) Refund(ctx context.Context, r store.Refund) error {
	if s.refund == nil {
		return s.Store.Refund(ctx, r)
	}
	return s.refund(s.Store, r)
}

func (s broken) Tell(ctx context.Context, key string, n store.News) error {
	if s.tell == nil {
		return s.Store.Tell(ctx, key, n)
	}
	return s.tell(s.Store, key, n)
}

func TestBrokenStoresAreCaught(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		fault broken
		check string // one that must fail
	}{
		"charges nothing": {broken{book: func(s store.Store, b store.Booking) (store.Booked, error) {
			return store.NewMemory().Book(ctx, b)
		}}, "a refusal leaves no trace"},
		"charges refusals": {broken{book: func(s store.Store, b store.Booking) (store.Booked, error) {
			r, err := s.Book(ctx, b)
			if err == nil && r.Outcome == store.Refused {
				b.Force = true
				_, err = s.Book(ctx, b)
			}
			return r, err
		}}, "a refusal leaves no trace"},
		"charges keys one by one": {broken{book: func(s store.Store, b store.Booking) (store.Booked, error) {
			if len(b.Draws) != 2 {
				return s.Book(ctx, b)
			}
			first := b
			first.Draws = b.Draws[:1]
			if _, err := s.Book(ctx, first); err != nil {
				return store.Booked{}, err
			}
			b.Draws = b.Draws[1:]
			r, err := s.Book(ctx, b)
			r.Draw++
			return r, err
		}}, "keys are charged all or none"},
		"refunds twice": {broken{refund: func(s store.Store, r store.Refund) error {
			if err := s.Refund(ctx, r); err != nil {
				return err
			}
			return s.Refund(ctx, r)
		}}, "generated histories match"},
		"believes its clock": {broken{book: func(s store.Store, b store.Booking) (store.Booked, error) {
			b.Draws = slices.Clone(b.Draws)
			for i := range b.Draws {
				b.Draws[i].Seen.Clock = 0
			}
			return s.Book(ctx, b)
		}}, "a clock that steps ahead ends no window"},
		"takes guesses for pauses": {broken{tell: func(s store.Store, key string, n store.News) error {
			n.Pause, n.Guess = max(n.Pause, n.Guess), 0
			return s.Tell(ctx, key, n)
		}}, "a guess holds but is no pause"},
		"forgets news": {broken{tell: func(s store.Store, key string, n store.News) error {
			if len(n.Stated) > 0 && n.Stated[0].Remaining < 0 {
				return s.Tell(ctx, key, n)
			}
			return nil
		}}, "a pause holds for every handle"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := storetest.Test(func() storetest.Setup {
					m := memory()
					tc.fault.Store = m.Stores[0]
					m.Stores = []store.Store{tc.fault, tc.fault}
					return m
				})
				if err == nil || !strings.Contains(err.Error(), tc.check) {
					t.Errorf("got %v, want a failure of %q", err, tc.check)
				}
			})
		})
	}
}

// amnesia gives each booking a store of its own.
type amnesia struct{}

func (amnesia) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	return store.NewMemory().Book(ctx, b)
}

func (amnesia) Refund(ctx context.Context, r store.Refund) error {
	return store.NewMemory().Refund(ctx, r)
}

func (amnesia) Tell(ctx context.Context, key string, n store.News) error {
	return store.NewMemory().Tell(ctx, key, n)
}
