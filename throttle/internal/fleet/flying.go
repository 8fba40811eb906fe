package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// flying is what this process has under way that draws on one key, in all queues.
type flying struct {
	n      int64    // requests
	lands  int      // calls under way that give places back
	queues []*queue // queues that wait for such a call to end
}

// flyingOf calls change with the flying of k, under the lock of f.
func (f *Fleet) flyingOf(k Key, change func(*flying)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.flying[k.ID]
	if x == nil {
		x = new(flying)
		f.flying[k.ID] = x
	}
	if change(x); x.n == 0 && x.lands == 0 {
		delete(f.flying, k.ID)
	}
}

// fly notes that n requests more are under way.
func (f *Fleet) fly(keys []Key, n int64) {
	for _, k := range keys {
		if k.bound() > 0 {
			f.flyingOf(k, func(x *flying) { x.n += n })
		}
	}
}

// Flies is how many requests that draw on k are under way in this process.
func (f *Fleet) Flies(k Key) (n int64) {
	f.flyingOf(k, func(x *flying) { n = x.n })
	return n
}

// lands notes that a call begins that gives back places of k.
func (f *Fleet) lands(k Key) { f.flyingOf(k, func(x *flying) { x.lands++ }) }

// landed notes that such a call has ended, which gave back n units of that limit, and lets the
// queues ask that waited for it. The caller holds the lock of no queue.
func (f *Fleet) landed(k Key, limit int, n int64) {
	var queues []*queue
	f.flyingOf(k, func(x *flying) {
		x.lands--
		queues, x.queues = x.queues, nil
		if s, ok := f.seen[k.ID]; ok && limit < len(s.Levels) {
			s.Levels = slices.Clone(s.Levels) // those of a batch are its own
			s.Levels[limit] = max(0, s.Levels[limit]-float64(n))
			f.seen[k.ID] = s
		}
	})
	for _, q := range queues {
		q.ring()
	}
}

// awaits reports whether all places are taken, as far as was heard, and a call is under way
// that gives some back. Then q need not ask now: it is pumped when that call has ended.
func (f *Fleet) awaits(q *queue) (awaits bool) {
	for i, k := range q.keys {
		if k.bound() == 0 {
			continue
		}
		f.flyingOf(k, func(x *flying) {
			s, at := f.seen[k.ID], q.flight.limit[i]
			if x.lands > 0 && at < len(s.Levels) && s.Levels[at] >= float64(k.bound()) {
				awaits = true
				if !slices.Contains(x.queues, q) {
					x.queues = append(x.queues, q)
				}
			}
		})
	}
	return awaits
}

func (q *queue) lands() {
	for _, k := range q.keys {
		if k.bound() > 0 {
			q.f.lands(k)
		}
	}
}

// land gives back what has ended, and what ends meanwhile. It returns after Deadline at the
// latest, because other requests wait for these places.
func (q *queue) land(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, q.f.c.Deadline)
	defer cancel()
	p := &q.flight
	for {
		q.mu.Lock()
		ended := p.ended
		p.ended = nil
		q.mu.Unlock()
		q.giveUp(ctx, ended)
		q.mu.Lock()
		if len(p.ended) == 0 || ctx.Err() != nil {
			p.ended, p.ending = nil, false // after ctx has ended, units leave the store's window by themselves
			q.mu.Unlock()
			return
		}
		q.lands()
		q.mu.Unlock()
	}
}

// giveUp gives ended back, key by key.
func (q *queue) giveUp(ctx context.Context, ended []*aloft) {
	for i, k := range q.keys {
		if k.bound() == 0 {
			continue
		}
		n := int64(0)
		for _, h := range ended {
			from, begin := h.place.from[i], time.Now()
			err := q.f.store.Refund(ctx, store.Refund{Key: k.ID, Gen: h.place.gens[i], At: from, Ready: from,
				Limits: flightLimits(k, 0)[:1], Units: []float64{float64(h.n)}, Held: []float64{0}})
			q.f.guard.heard(err, time.Since(begin), false)
			if err == nil {
				n += h.n
			}
		}
		q.f.landed(k, q.flight.limit[i], n)
	}
}
