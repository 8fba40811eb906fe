package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// headStart is how long an entry may be on its way although others wait for its
// place. It is longer than most servers take, because an entry that is ended may have
// been carried out and is sent again. It is short, because it is waited for where many
// hosts hang.
const headStart = 5 * time.Second

// try is what came of the last try of a queue: it decides which places the
// queue can have.
type try int

const (
	untried try = iota
	answered
	silent
	tries // how many there are
)

// flight is an entry on its way, and the place it has.
type flight struct {
	ctx    context.Context // of the sending
	cancel context.CancelFunc

	queue *queue
	last  try    // of the queue, when it began
	wakes uint64 // Transport.wakes then
	begun time.Time
	ends  time.Time // from then on it may be ended to make room
	moved bool      // that was done
}

// moved is the error of a try that was ended to make room after that long.
type moved time.Duration

func (m moved) Error() string {
	return fmt.Sprintf("no answer within %v, and other queues waited", time.Duration(m))
}

func (moved) Timeout() bool { return true }

// place reports whether an entry of q may be sent beside those on their way. Half
// of the places are for queues that were answered when they were last tried. Of
// the other half, queues that were not answered have at most half, and queues
// that were not tried yet have the rest: those of them that hang lose their
// places after a head start.
func (t *Transport) place(q *queue) bool {
	switch most := t.s.Concurrency; {
	case len(t.flights) >= most, t.settling >= maxSettling*most, len(q.settled) >= maxSettling:
		return false
	case q.last == answered:
		return true
	case q.last == silent && t.flying[silent] >= max(1, most/4):
		return false
	}
	return t.doubtful()
}

// doubtful reports whether there is room for one more queue that was not answered.
func (t *Transport) doubtful() bool {
	return t.flying[untried]+t.flying[silent] < max(1, t.s.Concurrency/2)
}

// depart gives q a place.
func (t *Transport) depart(ctx context.Context, q *queue, now time.Time) *flight {
	f := &flight{queue: q, last: q.last, wakes: t.wakes, begun: now, ends: now.Add(max(headStart, 2*q.took))}
	f.ctx, f.cancel = context.WithCancel(ctx)
	q.flight = f
	t.flights = append(t.flights, f)
	t.flying[f.last]++
	return f
}

// vacate gives the place of f back; t.mu is held.
func (t *Transport) vacate(f *flight) {
	f.cancel()
	f.queue.flight = nil
	t.flights = slices.DeleteFunc(t.flights, func(other *flight) bool { return other == f })
	t.flying[f.last]--
	t.forget(f.queue)
}

// crowd counts the queues that wait for a place, by what came of their last try.
type crowd [tries]int

// add counts q, which has no place, if one that another leaves may become its own.
func (c *crowd) add(t *Transport, q *queue) {
	written := t.settling < maxSettling*t.s.Concurrency && len(q.settled) < maxSettling // else the disk is what it waits for
	if written && (q.last != silent || t.flying[silent] < max(1, t.s.Concurrency/4)) {
		c[q.last]++
	}
}

// makeRoom ends as many flights as there are queues that wait for a place. Only
// flights are ended that have had their head start, which is twice as long as the last
// answer of their queue took, if that is longer than headStart. If more places are
// wanted, makeRoom returns when the next flight will have had its head start. A queue
// that had to leave is tried again, and then has all the time there is.
func (t *Transport) makeRoom(waiting crowd, now time.Time) (next time.Time) {
	wanted := waiting[untried] + waiting[answered] + waiting[silent]
	for _, f := range t.flights {
		if f.moved {
			wanted--
		}
	}
	for _, f := range t.flights {
		switch {
		case wanted <= 0:
			return next
		case f.moved || !t.helps(f, waiting):
		case now.Before(f.ends):
			next = earlier(next, f.ends)
		default:
			f.moved = true
			f.cancel()
			wanted--
		}
	}
	return next
}

// helps reports whether one of those that wait could have the place of f.
func (t *Transport) helps(f *flight, waiting crowd) bool {
	switch f.last {
	case untried:
		return true
	case answered:
		return waiting[answered] > 0 || t.doubtful()
	}
	return false
}
