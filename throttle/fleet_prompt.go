package throttle

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/weirhttp/weir/throttle/store"
)

// prompt is a Store whose calls end with their contexts, also if those of the
// one below do not: a file system may hang. What such a call charges is lost.
type prompt struct {
	store   Store
	overdue atomic.Int64 // calls that were left behind
}

// mostOverdue is how many calls are left behind. As long as there are so many,
// no more are made.
const mostOverdue = 16

var errOverdue = errors.New("throttle: the store does not return from earlier calls")

// Book is Store's.
func (p *prompt) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	return within(ctx, p, func() (store.Booked, error) { return p.store.Book(ctx, b) })
}

// Refund is Store's.
func (p *prompt) Refund(ctx context.Context, r store.Refund) error {
	_, err := within(ctx, p, func() (struct{}, error) { return struct{}{}, p.store.Refund(ctx, r) })
	return err
}

// Tell is Store's.
func (p *prompt) Tell(ctx context.Context, key string, n store.News) error {
	_, err := within(ctx, p, func() (struct{}, error) { return struct{}{}, p.store.Tell(ctx, key, n) })
	return err
}

// within returns what call returns, or what ctx ended with.
func within[T any](ctx context.Context, p *prompt, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if p.overdue.Load() >= mostOverdue {
		return result{}.value, errOverdue
	}
	done := make(chan result, 1)
	var left atomic.Bool
	go func() {
		v, err := call()
		done <- result{v, err}
		if left.Swap(true) {
			p.overdue.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // at the last moment: what it charged is not lost
		return r.value, r.err
	default:
	}
	if !left.Swap(true) {
		p.overdue.Add(1)
	}
	return result{}.value, ctx.Err()
}
