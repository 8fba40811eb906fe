package throttle

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// fleet asks a Store for the room that this process's own budgets have granted
// already. Requests that draw on the same keys wait in one fleetQueue, whose
// waiters ride together on one call. Calls run on goroutines that live as long
// as Deadline at most, probes a second; close waits for them.
type fleet struct {
	store Store
	c     FleetConfig
	ctx   context.Context // ends with close
	stop  context.CancelFunc
	calls sync.WaitGroup
	guard fleetGuard

	mu      sync.Mutex
	closed  bool
	queues  map[string]*fleetQueue
	retired uint64 // queues whose budget was changed
	seen    map[string]fleetSeen
	news    map[string]*fleetNews
}

// fleetSeen is what was last heard of a key, and when.
type fleetSeen struct {
	store.Standing
	when time.Time
}

// fleetDraw is one key a request draws on. The same key always has the same rates.
type fleetDraw struct {
	key   string // the same in every process
	name  string // of errors; no secrets
	rates []Rate
}

// fleetKeys is how many keys' standings are remembered. What is forgotten only
// cannot heal a store that loses its state.
const fleetKeys = 10000

func newFleet(s Store, c FleetConfig) (*fleet, error) {
	c, err := c.check()
	if err != nil {
		return nil, err
	}
	f := &fleet{store: &prompt{store: s}, c: c, queues: make(map[string]*fleetQueue), seen: make(map[string]fleetSeen), news: make(map[string]*fleetNews)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.guard.f = f
	return f, nil
}

// close gives unused leases back, refuses who waits, as later takes are, and
// waits for running calls.
func (f *fleet) close() {
	f.mu.Lock()
	var qs []*fleetQueue
	for _, q := range f.queues {
		qs = append(qs, q)
	}
	f.mu.Unlock()
	for _, q := range qs {
		q.close() // its refunds are calls
	}
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.calls.Wait()
	f.stop()
}

// ended reports whether close has been called.
func (f *fleet) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// start runs call on a goroutine of its own with the deadline of a call. It
// reports false after close.
func (f *fleet) start(call func(ctx context.Context)) bool { return f.startFor(f.c.Deadline, call) }

func (f *fleet) startFor(deadline time.Duration, call func(ctx context.Context)) bool {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false
	}
	f.calls.Add(1)
	f.mu.Unlock()
	go func() {
		defer f.calls.Done()
		ctx, cancel := context.WithTimeout(f.ctx, deadline)
		defer cancel()
		call(ctx)
	}()
	return true
}

// take waits until cost may be drawn, at most maxWait (negative: not at all)
// and not beyond ctx. Higher priorities go first, equal ones in order.
func (f *fleet) take(ctx context.Context, draws []fleetDraw, cost Cost, priority int, maxWait time.Duration) (*fleetGrant, error) {
	return f.await(ctx, draws, cost, &fleetWaiter{priority: priority}, maxWait)
}

// hold is take for a request that will be answered: its grant's answered is to
// be called, or cancel.
func (f *fleet) hold(ctx context.Context, draws []fleetDraw, cost Cost, priority int, maxWait time.Duration) (*fleetGrant, error) {
	return f.await(ctx, draws, cost, &fleetWaiter{priority: priority, held: true}, maxWait)
}

func (f *fleet) await(ctx context.Context, draws []fleetDraw, cost Cost, w *fleetWaiter, maxWait time.Duration) (*fleetGrant, error) {
	if len(draws) == 0 {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	now := time.Now()
	w.done, w.ends = make(chan struct{}), now.Add(max(0, maxWait))
	if d, ok := ctx.Deadline(); ok && d.Before(w.ends) {
		w.ends, w.byCaller = d, true
	}
	q := f.queue(draws)
	w.cost = q.vector(cost)
	q.enter(w)
	select {
	case <-w.done:
		if w.err != nil {
			return nil, w.err
		}
		return w.grant, w.grant.waitOut(ctx)
	default:
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		q.give(w, context.Cause(ctx))
	}
	<-w.done
	if w.err != nil {
		return nil, w.err
	}
	return w.grant, w.grant.waitOut(ctx)
}

// queue returns the queue of draws, which counts the caller as a guest.
func (f *fleet) queue(draws []fleetDraw) *fleetQueue {
	name := queueName(draws)
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[name]
	if q != nil && !q.draws(draws) {
		// The budget was changed. Who waits under the old one still goes by it.
		f.queues[name+" "+strconv.FormatUint(f.retired, 10)] = q
		f.retired++
		q = nil
	}
	if q == nil {
		f.sweep(time.Now())
		q = newFleetQueue(f, name, draws)
		f.queues[name] = q
	}
	q.guests++
	return q
}

func queueName(draws []fleetDraw) string {
	if len(draws) == 1 {
		return draws[0].key
	}
	var b strings.Builder
	for _, d := range draws {
		b.WriteString(d.key)
		b.WriteByte(0)
	}
	return b.String()
}

// outlook is how long the store last said that draws have no room.
func (f *fleet) outlook(draws []fleetDraw) time.Duration {
	f.mu.Lock()
	q := f.queues[queueName(draws)]
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
	return max(0, q.refused.until.Sub(now))
}

// sweep drops idle ones among a few queues of the map's random order: with
// every new queue two others are looked at, so idle ones cannot pile up.
func (f *fleet) sweep(now time.Time) {
	looked := 0
	for name, q := range f.queues {
		if q.guests == 0 && q.mu.TryLock() { // the other order is q.mu, f.mu
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

// recall returns what was last heard of key.
func (f *fleet) recall(key string, limits int, now time.Time) store.Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[key]
	if !ok || len(s.Levels) != limits {
		return store.Seen{}
	}
	return store.Seen{Standing: s.Standing, Age: max(0, now.Sub(s.when))}
}

// heard remembers the standings a call brought. Of two calls on their way at
// once the one the store served later counts.
func (f *fleet) heard(b store.Booking, r store.Booked) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range b.Draws {
		k := r.Keys[i]
		old, ok := f.seen[d.Key]
		if k.Gen == 0 || ok && old.Gen == k.Gen && old.At > k.At {
			continue
		}
		for key := range f.seen {
			if ok || len(f.seen) < fleetKeys {
				break
			}
			delete(f.seen, key) // any: the map's order is random
		}
		f.seen[d.Key] = fleetSeen{k, now}
	}
}

func isBusy(err error) bool { return errors.Is(err, ErrStoreBusy) }
