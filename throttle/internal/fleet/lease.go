package fleet

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const mostLeased = 1000 // requests

// lease is room booked ahead of demand, for requests of one cost. Its size
// doubles when it is used up in time and halves when most of it is left.
type lease struct {
	batch *batch
	cost  []int64
	size  int64 // of the next one
	taken int64
	left  int64
	until time.Time
	timer *time.Timer
}

func (l *lease) held(now time.Time) bool { return l.left > 0 && now.Before(l.until) }

// serve grants the head of the queue from the lease, if it can.
func (l *lease) serve(q *queue, now time.Time) bool {
	if !l.held(now) || !slices.Equal(l.cost, q.waiting[0].cost) {
		return false
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	l.left--
	q.grant(w, l.batch, now)
	if l.left == 0 {
		l.size = min(2*l.size, mostLeased)
		l.timer.Stop()
	}
	return true
}

// extend adds the lease to a booking of n requests, all of one cost, and
// returns its size. It takes at most half of what is thought to be left, so
// that near exhaustion there are no leases.
func (l *lease) extend(q *queue, b *store.Booking, n int) int64 {
	if q.f.c.Lease == 0 || l.left > 0 || q.short || q.flight.unit > 0 { // what is under way is no lease
		return 0
	}
	first := q.waiting[0].cost
	for _, w := range q.waiting[:n] {
		if !slices.Equal(w.cost, first) {
			return 0
		}
	}
	all, twice := make([]int64, len(first)), make([]int64, len(first))
	for extra := max(l.size, 1); extra > 0; extra /= 2 {
		for i, c := range first {
			all[i] = (int64(n) + extra) * c
			twice[i] = (int64(n) + 2*extra) * c
		}
		if holds(b, twice) {
			setCosts(b, first, all)
			return extra
		}
	}
	return 0
}

// begin takes a booked lease up. It counts from when it was asked for.
func (l *lease) begin(q *queue, b *batch, cost []int64, extra int64) {
	if extra == 0 {
		return
	}
	l.end() // of two calls on their way at once
	l.batch, l.cost, l.left, l.taken = b, cost, extra, extra
	l.size = max(l.size, 1)
	l.until = b.sent.Add(q.f.c.Lease)
	d := max(1, time.Until(l.until)) // never due at once: see testnet.Wait
	if l.timer == nil {
		l.timer = time.AfterFunc(d, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			if !l.held(time.Now()) {
				l.end()
				q.pump(time.Now())
			}
		})
		return
	}
	l.timer.Reset(d)
}

// end gives what is left back.
func (l *lease) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.left == 0 {
		return
	}
	if 2*l.left > l.taken {
		l.size = max(1, l.size/2)
	}
	back := slices.Clone(l.cost)
	for i := range back {
		back[i] *= l.left
	}
	l.left = 0
	l.batch.refund(back, l.batch.place)
}
