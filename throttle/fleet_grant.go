package throttle

import (
	"context"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A fleetGrant is room that was booked. The nil grant is room that needed no
// booking.
type fleetGrant struct {
	batch *fleetBatch // nil: granted without the store
	cost  []int64
	ready time.Time
	once  sync.Once

	place *fleetPlace // under the queue's lock, as are those below
	open  int         // place in fleetLate.open, from 1; zero: none
	came  time.Time   // the answer, if late
}

// fleetBatch is a booking that several requests rode on. What they give back
// is counted together: a meter takes back no more than it still holds of all.
type fleetBatch struct {
	q       *fleetQueue
	booking store.Booking
	booked  store.Booked
	sent    time.Time
	place   *fleetPlace

	mu    sync.Mutex
	given [][]float64 // per draw, per limit
}

func newFleetBatch(q *fleetQueue, b store.Booking, r store.Booked, sent time.Time) *fleetBatch {
	f := &fleetBatch{q: q, booking: b, booked: r, sent: sent, place: &fleetPlace{begins: sent.Add(r.Wait)}}
	for i, d := range b.Draws {
		f.given = append(f.given, make([]float64, len(d.Limits)))
		f.place.gens = append(f.place.gens, r.Keys[i].Gen)
		f.place.from = append(f.place.from, r.Start(i))
	}
	return f
}

func (g *fleetGrant) waitOut(ctx context.Context) error {
	if d := time.Until(g.ready); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			g.cancel()
			return context.Cause(ctx)
		}
	}
	return nil
}

// cancel gives everything back: nothing was sent.
func (g *fleetGrant) cancel() {
	if g != nil && g.batch != nil {
		g.once.Do(func() { g.batch.refund(g.cost, g.leave()) })
	}
}

// leave ends the watch on g and returns where the store keeps it.
func (g *fleetGrant) leave() *fleetPlace {
	q := g.batch.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.late.drop(g)
	q.late.rest()
	return g.place
}

// settle charges or gives back the difference to actual.
func (g *fleetGrant) settle(actual Cost) {
	if g == nil || g.batch == nil {
		return
	}
	g.once.Do(func() {
		back, more := make([]int64, len(g.cost)), make([]int64, len(g.cost))
		for i, unit := range g.batch.q.units {
			n := g.cost[i]
			if _, ok := actual[unit]; ok {
				n = min(max(0, actual.of(unit)), store.MaxAmount)
			}
			back[i], more[i] = max(0, g.cost[i]-n), max(0, n-g.cost[i])
		}
		g.batch.refund(back, g.leave())
		g.batch.q.force(more)
	})
}

// refund sends what units amount to, once.
func (b *fleetBatch) refund(units []int64, at *fleetPlace) {
	if isZero(units) || !b.q.f.guard.allows(time.Now()) {
		return
	}
	b.q.f.start(func(ctx context.Context) {
		for i := range b.booking.Draws {
			b.mu.Lock()
			r := b.booked.Refund(b.booking, i, units, time.Since(b.sent), b.given[i])
			b.mu.Unlock()
			if r.Gen == at.gens[i] {
				r.Ready = at.from[i]
			}
			b.q.f.guard.heard(b.q.f.store.Refund(ctx, r), false)
		}
	})
}

func isZero(units []int64) bool {
	for _, n := range units {
		if n != 0 {
			return false
		}
	}
	return true
}
