package fleet

import (
	"context"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// Raise lets mark, which is kept under key, tell all processes that the count of t may go
// up to n. It is never lowered, and of several that raise it at once the highest stays. No
// request waits for it.
func (f *Fleet) Raise(key string, t, mark *Tally, n int64) {
	t.mu.Lock()
	n -= t.shift
	t.mu.Unlock()
	mark.mu.Lock()
	defer mark.mu.Unlock()
	if mark.adding || !f.guard.allows(time.Now()) || mark.known && n <= mark.count-mark.shift {
		return
	}
	mark.adding = f.start(func(ctx context.Context) {
		defer func() {
			mark.mu.Lock()
			mark.adding = false
			mark.mu.Unlock()
		}()
		for ctx.Err() == nil { // again where others raised it meanwhile
			l, level := mark.limit(0)
			l.Size = float64(n)
			more := n - int64(level)
			if more <= 0 {
				return
			}
			d := store.Draw{Key: key, Limits: []store.Limit{l}, Units: []store.UnitCost{{Unit: mark.unit, First: more, All: more}}}
			begin := time.Now()
			r, err := f.store.Book(ctx, store.Booking{Draws: []store.Draw{d}})
			f.guard.heard(err, time.Since(begin), false)
			if err != nil {
				return
			}
			if mark.heard(r.Keys[0], r.Keys[0].Levels[0], 0); r.Keys[0].Levels[0] == level {
				return // it was not for others: the key is paused
			}
		}
	})
}

// Raised is how far mark says that the count of t may go.
func (t *Tally) Raised(mark *Tally) (n int64, known bool) {
	mark.mu.Lock()
	n, known = mark.count-mark.shift, mark.known
	mark.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return n + t.shift, known && t.known && n > 0
}
