package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// An expiry is waiters by when they are refused: a heap, the first on top. When that is
// stands beside each, as with very many every look at a waiter waits for memory.
type expiry []expires

// below is how many elements stand right below one of an expiry. Each move of an element is
// noted in its waiter, so eight instead of two take a third of the writes from the top to the
// bottom, and the times to be compared are in two or three lines of memory.
const below = 8

type expires struct {
	at meter.Instant
	w  *Waiter
}

// put writes x at index i.
func (h expiry) put(i int, x expires) {
	h[i] = x
	x.w.inExpiry = int32(i)
}

func (h *expiry) push(w *Waiter) {
	*h = append(*h, expires{})
	h.up(len(*h)-1, expires{w.expires, w})
}

// remove takes the waiter out that stands at index i.
func (h *expiry) remove(i int) {
	a := *h
	a[i].w.inExpiry = -1
	last := len(a) - 1
	x := a[last]
	a[last] = expires{}
	*h = a[:last]
	switch {
	case i == last:
	case i > 0 && x.at < a[(i-1)/below].at:
		h.up(i, x)
	default:
		h.down(i, x)
	}
}

// up puts x at index i, which is free, or before.
func (h expiry) up(i int, x expires) {
	for i > 0 && x.at < h[(i-1)/below].at {
		h.put(i, h[(i-1)/below])
		i = (i - 1) / below
	}
	h.put(i, x)
}

// down puts x at index i, which is free, or after.
func (h expiry) down(i int, x expires) {
	for first := below*i + 1; first < len(h); first = below*i + 1 {
		next := first
		for j := first + 1; j < min(first+below, len(h)); j++ {
			if h[j].at < h[next].at {
				next = j
			}
		}
		if x.at <= h[next].at {
			break
		}
		h.put(i, h[next])
		i = next
	}
	h.put(i, x)
}

// watch sets the timer by which waits that became too long are ended.
func (e *Domain) watch(now meter.Instant) {
	c := e.crowd
	if c == nil || len(c.expiry) == 0 {
		return
	}
	t := c.expiry[0].at
	switch {
	case c.timer == nil:
		c.wake = t
		c.timer = time.AfterFunc(t.Until(now), e.expire)
	case c.wake == meter.Never || t < c.wake:
		c.wake = t
		c.timer.Reset(t.Until(now))
	}
}

// expire refuses those whose time is up, unless there is room for them just now or they are
// spared. If there are more than a slice of them, the timer comes again for the others.
func (e *Domain) expire() {
	e = e.Lock()
	defer e.Unlock()
	now := e.Now()
	if e.crowd != nil {
		e.crowd.wake = meter.Never
	}
	for n := 0; n < slice/look && e.crowd != nil && len(e.crowd.expiry) > 0 && e.crowd.expiry[0].at <= now; n++ {
		w := e.crowd.expiry[0].w
		if w.version != w.Group.version || !w.short(now) {
			e.retry(w)
			e.Run(now)
			if e.crowd != nil && len(e.crowd.dirty) > 0 {
				break // there may be room for it yet
			}
		}
		if !w.over() && !e.spare(now, w) {
			e.refuse(now, w, w.tooLong(now))
		}
	}
	e.Run(now)
	e.watch(now)
}
