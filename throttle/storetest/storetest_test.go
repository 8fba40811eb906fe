package storetest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/storetest"
)

func memory() storetest.Setup {
	s := throttle.NewMemoryStore()
	return storetest.Setup{Stores: []throttle.Store{s, s}, Advance: time.Sleep, Now: time.Now}
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

// broken is a store with one fault.
type broken struct {
	throttle.Store
	book   func(s throttle.Store, b throttle.Booking) (throttle.Booked, error)
	refund func(s throttle.Store, r throttle.Refund) error
	tell   func(s throttle.Store, key string, n throttle.News) error
}

func (s broken) Book(ctx context.Context, b throttle.Booking) (throttle.Booked, error) {
	if s.book == nil || ctx.Err() != nil {
		return s.Store.Book(ctx, b)
	}
	return s.book(s.Store, b)
}

func (s broken) Refund(ctx context.Context, r throttle.Refund) error {
	if s.refund == nil {
		return s.Store.Refund(ctx, r)
	}
	return s.refund(s.Store, r)
}

func (s broken) Tell(ctx context.Context, key string, n throttle.News) error {
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
		"charges nothing": {broken{book: func(s throttle.Store, b throttle.Booking) (throttle.Booked, error) {
			return throttle.NewMemoryStore().Book(ctx, b)
		}}, "a refusal leaves no trace"},
		"charges refusals": {broken{book: func(s throttle.Store, b throttle.Booking) (throttle.Booked, error) {
			r, err := s.Book(ctx, b)
			if err == nil && r.Outcome == throttle.Refused {
				b.Force = true
				_, err = s.Book(ctx, b)
			}
			return r, err
		}}, "a refusal leaves no trace"},
		"charges keys one by one": {broken{book: func(s throttle.Store, b throttle.Booking) (throttle.Booked, error) {
			if len(b.Draws) != 2 {
				return s.Book(ctx, b)
			}
			first := b
			first.Draws = b.Draws[:1]
			if _, err := s.Book(ctx, first); err != nil {
				return throttle.Booked{}, err
			}
			b.Draws = b.Draws[1:]
			r, err := s.Book(ctx, b)
			r.Draw++
			return r, err
		}}, "keys are charged all or none"},
		"refunds twice": {broken{refund: func(s throttle.Store, r throttle.Refund) error {
			if err := s.Refund(ctx, r); err != nil {
				return err
			}
			return s.Refund(ctx, r)
		}}, "generated histories match"},
		"forgets news": {broken{tell: func(s throttle.Store, key string, n throttle.News) error {
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
					m.Stores = []throttle.Store{tc.fault, tc.fault}
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

func (amnesia) Book(ctx context.Context, b throttle.Booking) (throttle.Booked, error) {
	return throttle.NewMemoryStore().Book(ctx, b)
}

func (amnesia) Refund(ctx context.Context, r throttle.Refund) error {
	return throttle.NewMemoryStore().Refund(ctx, r)
}

func (amnesia) Tell(ctx context.Context, key string, n throttle.News) error {
	return throttle.NewMemoryStore().Tell(ctx, key, n)
}
