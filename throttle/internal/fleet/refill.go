package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// Refill gives units of k by hand, for all processes: of each rate as many as of
// says of its unit. It waits for the store; after an error they may be there or not.
func (f *Fleet) Refill(k Key, of func(unit string) int64) error {
	ls, units := storeLimits(k.Rates, f.c, time.Now())
	var n store.News
	for _, l := range ls {
		n.Refill = append(n.Refill, store.Refill{Kind: l.Kind, ID: l.ID, Units: min(of(units[l.Unit]), store.MaxAmount)})
	}
	begin := time.Now()
	done := make(chan error, 1)
	if !f.start(func(ctx context.Context) {
		err := f.store.Tell(ctx, k.ID, n)
		f.guard.heard(err, time.Since(begin), false)
		done <- err
	}) {
		return errors.New("after Close")
	}
	if err := <-done; err != nil {
		return fmt.Errorf("the store has not confirmed it: %w", err)
	}
	f.again(k.ID)
	return nil
}

// again forgets what was heard of a key, and lets those ask who were told to wait.
func (f *Fleet) again(id string) {
	f.mu.Lock()
	delete(f.seen, id)
	var qs []*queue
	for _, q := range f.queues {
		if slices.ContainsFunc(q.keys, func(k Key) bool { return k.ID == id }) {
			qs = append(qs, q)
		}
	}
	f.mu.Unlock() // its order is q.mu, f.mu
	for _, q := range qs {
		q.mu.Lock()
		now := time.Now()
		q.notBefore, q.refused = now, shortage{}
		q.pump(now)
		q.mu.Unlock()
	}
}
