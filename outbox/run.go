package outbox

import (
	"context"
	"math"
	"time"
)

// Run sends what is pending, and what is kept from then on, until ctx ends or
// the outbox is closed or its file fails, and returns that error. If the first entry
// of a queue could not be delivered, be it by Run or when the request was made, the
// queue is tried again when every has passed, or after the next Wake. If every is
// zero, it is tried only after a Wake. If its server's answer had a Retry-After, the
// queue is tried no earlier than that says, up to an hour. Other queues do not wait
// for it.
func (t *Transport) Run(ctx context.Context, every time.Duration) error {
	t.Wake()
	return (&round{t: t, last: math.MaxUint64, every: every}).run(ctx)
}

// Wake has Run try all queues now, or once more if it is trying them. It leaves out
// those whose servers have asked to be left alone for longer. It returns at once, so
// it may be called by a hook, such as the breaker's OnStateChange when
// a circuit closes. A nil Transport does nothing, so that the hook can be
// written before New.
func (t *Transport) Wake() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakes++
	t.signal()
}

// woken is how often Wake was called.
func (t *Transport) woken() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wakes
}
