package outbox

import (
	"context"
	"errors"
	"time"
)

// Run calls Drain now, after each Wake, and every so often if every is
// positive, until ctx ends or the outbox is closed or its file fails, and
// returns that error. What could not be delivered waits for the next turn.
func (t *Transport) Run(ctx context.Context, every time.Duration) error {
	for {
		_, err := t.Drain(ctx)
		var later *Error
		if err != nil && !errors.As(err, &later) || ctx.Err() != nil {
			return err
		}
		if err := t.rest(ctx, every); err != nil {
			return err
		}
	}
}

// rest waits for Run's next turn.
func (t *Transport) rest(ctx context.Context, every time.Duration) error {
	var tick <-chan time.Time
	if every > 0 {
		timer := time.NewTimer(every)
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-tick:
	case <-t.wake:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closing.Done():
		return ErrClosed
	}
	return nil
}

// Wake has Run drain now, or once more if it is draining. It never blocks: it
// may be called by a hook, such as the breaker's OnStateChange when a circuit
// closes. A nil Transport does nothing, so that the hook can be written before
// New.
func (t *Transport) Wake() {
	if t == nil {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
