package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Grant is room that was booked. The methods of the nil Grant, which needed no booking, do
// nothing. Only the first call of Cancel or Settle counts. It is safe for concurrent use.
type Grant struct {
	q     *queue
	batch *batch // nil: granted without the store
	cost  []int64
	after []int64   // what the requests of the batch cost together that come after it; nil: there are none
	ready time.Time // when the request may be sent
	once  sync.Once

	place *place    // where the store counts it. This and the fields below are guarded by the queue's lock
	open  int       // index in lateness.open, from 1; zero: it is not there
	came  time.Time // when the answer came, if that was late
	flies bool      // its queue's flight counts it
}

// batch is a booking for several requests. What they give back is counted together, because a
// meter takes back no more than it still has of all of them.
type batch struct {
	q       *queue
	booking store.Booking
	booked  store.Booked
	sent    time.Time
	place   *place

	mu    sync.Mutex
	given [][]float64 // units given back, per draw and limit
}

func newBatch(q *queue, b store.Booking, r store.Booked, sent time.Time) *batch {
	f := &batch{q: q, booking: b, booked: r, sent: sent, place: &place{begins: sent.Add(r.Wait)}}
	for i, d := range b.Draws {
		f.given = append(f.given, make([]float64, len(d.Limits)))
		f.place.gens = append(f.place.gens, r.Keys[i].Gen)
		f.place.from = append(f.place.from, r.Start(i))
	}
	q.late.end(f.place)
	return f
}

func (g *Grant) waitOut(ctx context.Context) error {
	if g.batch == nil || g.batch.booked.Wait == 0 {
		return nil // without a look at the clock
	}
	if d := time.Until(g.ready); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			g.Cancel()
			return context.Cause(ctx)
		}
	}
	return nil
}

// Cancel gives everything back, because nothing was sent. It calls Done.
func (g *Grant) Cancel() {
	if g != nil && g.batch != nil {
		g.once.Do(func() { g.batch.refund(g.q.flight.without(g.cost), g.leave()) })
	}
	g.Done()
}

// leave ends the watch on g's answer, and returns where the store counts g.
func (g *Grant) leave() *place {
	q := g.batch.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.late.drop(g)
	q.late.rest()
	return g.place
}

// Settle charges or gives back the difference to actual, the cost by unit; units that it does
// not name stay as they are. The request may still be under way: Settle does not call Done.
func (g *Grant) Settle(actual map[string]int64) {
	if g == nil || g.batch == nil {
		return
	}
	g.once.Do(func() {
		back, more := make([]int64, len(g.cost)), make([]int64, len(g.cost))
		for i, unit := range g.batch.q.units {
			n := g.cost[i]
			if _, ok := actual[unit]; ok {
				n = min(max(0, actual[unit]), store.MaxAmount)
			}
			back[i], more[i] = max(0, g.cost[i]-n), max(0, n-g.cost[i])
		}
		g.batch.refund(back, g.leave())
		g.batch.q.force(more)
	})
}

// refund gives units back to the store, in a call for which nobody waits.
func (b *batch) refund(units []int64, at *place) {
	if isZero(units) || !b.q.f.guard.allows(time.Now()) {
		return
	}
	b.q.f.start(func(ctx context.Context) { b.giveBack(ctx, units, at) })
}

// charged is how many units b was charged.
func (b *batch) charged() []int64 {
	units := make([]int64, len(b.q.units))
	for i, u := range b.booking.Draws[0].Units {
		units[i] = charged(u, b.booked.Outcome)
	}
	return units
}

func (b *batch) giveBack(ctx context.Context, units []int64, at *place) {
	for i := range b.booking.Draws {
		for _, t := range b.q.keys[i].Tallies {
			t.gave(units[slices.Index(b.q.units, t.unit)])
		}
		b.mu.Lock()
		r := b.booked.Refund(b.booking, i, units, b.given[i])
		b.mu.Unlock()
		if r.Gen == at.gens[i] {
			r.Ready = at.from[i]
		}
		begin := time.Now()
		b.q.f.guard.heard(b.q.f.store.Refund(ctx, r), time.Since(begin), false)
	}
}

func isZero(units []int64) bool {
	return !slices.ContainsFunc(units, func(n int64) bool { return n != 0 })
}
