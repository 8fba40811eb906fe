package fleet

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// mostLeased is how many requests a lease is for at most: more would save few calls, and other
// processes lack what it keeps.
const mostLeased = 1000

// lease is room booked ahead of demand, for requests of one cost. The size of the next lease
// doubles when one is used up in time, and is halved when most of one is left.
type lease struct {
	batch *batch
	cost  []int64   // of each request
	size  int64     // of the next lease, in requests
	taken int64     // requests that this lease was for
	left  int64     // of these, how many are left
	until time.Time // when it ends
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

// extend adds a lease to a booking of n requests, if all have the same cost, and
// returns its size. It takes at most half of what is probably left, so
// that there are no leases when little is left.
func (l *lease) extend(q *queue, b *store.Booking, n int) int64 {
	if q.f.c.Lease == 0 || l.left > 0 || q.short || q.flight.unit > 0 { // a place in flight cannot be leased
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

// begin begins a lease that was booked. Its time counts from when the call was sent.
func (l *lease) begin(q *queue, b *batch, cost []int64, extra int64) {
	if extra == 0 {
		return
	}
	l.end() // a second call may have brought another one
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

// end gives back what is left.
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
