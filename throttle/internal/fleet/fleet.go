package fleet

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Fleet asks a Store for room. Requests that draw on the same keys wait in
// one queue, and one call books for several of them. Calls run on goroutines
// that live for a second at most, or for Deadline if that is longer, or on that of the
// only request that waits; that of Follow lives until it has heard enough. Close waits for them,
// and cancels them after Deadline.
// A Fleet is safe for concurrent use. The nil Fleet has no store: State returns Up, and Close
// does nothing.
type Fleet struct {
	store   store.Store
	c       Config
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	calls   sync.WaitGroup
	closing chan struct{} // closed by Close
	guard   guard
	deal    float64 // 0 to 1, by chance: see places

	mu      sync.Mutex
	closed  bool
	queues  map[string]*queue
	retired uint64             // how many queues had their rates changed
	seen    map[string]heardOf // by key
	news    map[string]*unsent // by key
	flying  map[string]*flying // by key
}

// New returns a Fleet that asks s. Close ends it.
func New(s store.Store, c Config) *Fleet {
	if c.Deadline == 0 {
		c.Deadline = 50 * time.Millisecond
	}
	f := &Fleet{store: s, c: c, queues: make(map[string]*queue), seen: make(map[string]heardOf), news: make(map[string]*unsent), flying: make(map[string]*flying), closing: make(chan struct{}), deal: rand.Float64()}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.guard.f = f
	return f
}

// Config returns f's settings, with zero values replaced by the defaults.
func (f *Fleet) Config() Config { return f.c }

// State is how the store last answered.
func (f *Fleet) State() State {
	if f == nil {
		return Up
	}
	return f.guard.now()
}

// Close gives unused leases back, refuses requests that wait, and all later ones, and
// waits for running calls. It may be called more than once.
func (f *Fleet) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	queues := slices.Collect(maps.Values(f.queues))
	f.mu.Unlock()
	for _, q := range queues {
		q.close() // its refunds are calls
	}
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.closing)
	}
	f.mu.Unlock()
	cut := time.AfterFunc(f.c.Deadline, f.stop)
	f.calls.Wait()
	cut.Stop()
	f.stop()
}

// ended reports whether Close has been called.
func (f *Fleet) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// start runs call on a new goroutine, with a context that ends after patience. After Close it
// does nothing and returns false.
func (f *Fleet) start(call func(ctx context.Context)) bool {
	if !f.hold() {
		return false
	}
	go func() {
		defer f.calls.Done()
		ctx, cancel := context.WithTimeout(f.ctx, f.patience())
		defer cancel()
		call(ctx)
	}()
	return true
}

// hold makes Close wait until calls.Done is called. After Close it returns false.
func (f *Fleet) hold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.calls.Add(1)
	}
	return !f.closed
}

// patience is how long a call may take. Requests wait for it no longer than Deadline.
func (f *Fleet) patience() time.Duration { return max(guardPatience, f.c.Deadline) }

// Book waits until cost, units by name, may be drawn from all of keys. Without
// keys there is nothing to wait for: the Grant is nil, which is a valid one.
func (f *Fleet) Book(ctx context.Context, keys []Key, cost map[string]int64, o Options) (*Grant, *Refusal) {
	if len(keys) == 0 {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, &Refusal{Err: context.Cause(ctx)}
	}
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	w := &waiter{priority: o.Priority, held: o.Held, heard: o.Heard, done: make(chan struct{}), since: now, ends: now.Add(max(0, o.MaxWait))}
	if d, ok := ctx.Deadline(); ok && d.Before(w.ends) {
		w.ends, w.byCaller = d, true
	}
	q := f.queue(keys)
	w.cost = q.vector(w.few[:0], cost)
	q.enter(w)
	select {
	case <-w.done:
	default:
		select {
		case <-w.done:
		case <-ctx.Done():
			q.give(w, &Refusal{Err: context.Cause(ctx)})
		}
		<-w.done
	}
	if w.refusal != nil {
		return nil, w.refusal
	}
	if err := w.grant.waitOut(ctx); err != nil {
		return nil, &Refusal{Err: err}
	}
	return w.grant, nil
}

// queue returns the queue of keys, which counts the caller as a guest.
func (f *Fleet) queue(keys []Key) *queue {
	name := queueName(keys)
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[name]
	if q != nil && !q.draws(keys) {
		// The rates were changed. Requests that wait already go by the old ones.
		f.queues[name+" "+strconv.FormatUint(f.retired, 10)] = q
		f.retired++
		q = nil
	}
	if q == nil {
		f.sweep(time.Now())
		q = newQueue(f, keys)
		f.queues[name] = q
	}
	q.guests.Add(1)
	return q
}

func queueName(keys []Key) string {
	if len(keys) == 1 && len(keys[0].Tallies) == 0 {
		return keys[0].ID
	}
	var b strings.Builder
	for _, d := range keys {
		b.WriteString(d.ID)
		for _, t := range d.Tallies {
			b.WriteString(t.id)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// Outlook is for how long keys will have no room, as the store last said; zero: they have
// some, or it is not known.
func (f *Fleet) Outlook(keys []Key) time.Duration {
	f.mu.Lock()
	q := f.queues[queueName(keys)]
	f.mu.Unlock()
	if q == nil {
		return 0
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.notBefore.After(now) {
		return 0
	}
	return max(0, q.refused.sure().Sub(now))
}

// sweep looks at two queues, in the random order of the map, and drops those that are idle.
// It is called for each new queue, so idle ones cannot pile up.
func (f *Fleet) sweep(now time.Time) {
	looked := 0
	for name, q := range f.queues {
		if q.guests.Load() == 0 && q.mu.TryLock() { // Lock could deadlock: others lock q.mu first
			if q.idle(now) {
				delete(f.queues, name)
			}
			q.mu.Unlock()
		}
		if looked++; looked == 2 {
			return
		}
	}
}

func isBusy(err error) bool { return errors.Is(err, store.ErrBusy) }
