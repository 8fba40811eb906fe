package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A store in memory forgets what is idle, and beyond its bound it is busy for
// new keys alone.
func TestMemoryStoreIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory().(*memoryStore)
		book := func(key string) error {
			_, err := s.Book(t.Context(), Booking{Draws: []Draw{{Key: key, Units: []UnitCost{{"u", 1, 1}},
				Limits: []Limit{{ID: "m", Kind: MeterLimit, Size: 1000, Rate: 1000}}}}})
			return err
		}
		tell := func(key string) error { return s.Tell(t.Context(), key, News{Pause: time.Second}) }
		for i := range 300 {
			book(fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		for range 300 {
			book("still")
		}
		if len(s.ledgers) != 1 {
			t.Errorf("%d keys are kept after an hour, want the one in use", len(s.ledgers))
		}
		for i := range 300 {
			tell(fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		for range 310 {
			tell("still")
		}
		if len(s.ledgers) != 1 {
			t.Errorf("%d keys are kept after an hour, want the one that was told of", len(s.ledgers))
		}
		for i := range memoryKeys - 1 {
			s.ledgers[fmt.Sprint(i)] = Ledger{Gen: 1, Expires: math.MaxInt64}
		}
		if err := errors.Join(book("still"), book("0"), tell("still"), tell("0")); err != nil {
			t.Errorf("keys that are there: %v", err)
		}
		if err := book("new"); !errors.Is(err, ErrBusy) {
			t.Errorf("a new key: %v", err)
		}
		if err := tell("new"); !errors.Is(err, ErrBusy) {
			t.Errorf("news of a new key: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Book(ctx, Booking{Draws: []Draw{{Key: "0"}}}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}
