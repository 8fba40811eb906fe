package throttle

import (
	"container/heap"
	"time"
)

// waiter is a request that waits. It holds no units and no promise: all it has
// is its places in lines.
type waiter struct {
	ask
	draws   []draw
	claims  []*claim
	yielded int     // how often it left a line because it waited longer elsewhere
	aside   instant // until when it has to wait there, so that leaving more lines is no more
	left    instant // when it left the last
	turns   int     // how many it left then

	expires    instant       // when it is refused; never: it is not
	since      instant       // when its wait began
	allowed    time.Duration // from its beginning until expires
	deadline   instant       // of its context; never: none
	inExpiry   int           // index into the heap, plus one
	next, prev *waiter       // in its scope

	ready   chan struct{} // has one element when the wait is over
	granted bool
	kept    bool    // the one who waited knows how it ended
	at      instant // when it was granted
	err     *Error  // why it was refused
}

// newWaiter makes a waiter of q.
func newWaiter(q *ask, draws []draw) *waiter {
	w := &waiter{ask: *q, ready: make(chan struct{}, 1)}
	w.draws = w.gates(append(make([]draw, 0, len(draws)+2), draws...))
	w.expires, w.deadline = never, never
	return w
}

// mayYield is for how many waits a waiter may leave its lines; then it holds its
// places. mayTurn is how many it may leave at one instant for one wait.
const (
	mayYield = 16
	mayTurn  = 4
)

// before reports whether w ranks before v.
func (w *waiter) before(v *waiter) bool {
	if w.priority != v.priority {
		return w.priority > v.priority
	}
	return w.seq < v.seq
}

// in returns w's place in a's line, or nil.
func (w *waiter) in(a *account) *claim {
	if a.line != nil {
		for _, k := range w.claims {
			if k.line == a.line {
				return k
			}
		}
	}
	return nil
}

// needs is how many units of a w draws.
func (w *waiter) needs(a *account) int64 {
	for i := range w.draws {
		if w.draws[i].a == a {
			return w.draws[i].n
		}
	}
	return 0
}

// opens is when l has room for w, or if that is now, when all its lines have:
// what has room now may have none when the others do.
func (w *waiter) opens(now instant, l *line) instant {
	t := l.a.at(now, w.needs(l.a))
	if t > now {
		return t
	}
	for _, k := range w.claims {
		t = max(t, k.line.a.at(now, k.n))
	}
	return t
}

// stuck reports whether w must await its turn in some line.
func (w *waiter) stuck() bool {
	for _, k := range w.claims {
		if k.line.pick() != w {
			return true
		}
	}
	return false
}

// yields reports whether w, the pick of l, should leave l: there is room for it,
// and what others take meanwhile will be there again when it needs it.
func (w *waiter) yields(now instant, l *line) bool {
	k := w.in(l.a)
	if k == nil || len(w.claims) < 2 || l.a.at(now, k.n) > now {
		return false
	}
	wait := now
	for _, o := range w.claims {
		switch a := o.line.a; {
		case o == k:
		case o.line.pick() == w:
			wait = max(wait, a.at(now, o.n))
		default:
			wait = max(wait, a.meter.ETA(max(now, a.paused), o.line.units-o.n, o.n))
		}
	}
	if wait <= now.Add(l.a.meter.Regain(k.n)) {
		return false
	}
	if w.left != now {
		w.left, w.turns = now, 0
	}
	if now < w.aside && w.turns < mayTurn {
		w.turns++
		return true
	}
	if w.yielded >= mayYield {
		return false
	}
	w.yielded++
	if wait != never {
		w.aside = wait
	}
	return true
}

// stretch makes a request for a part as large as there is room for.
func stretch(now instant, draws []draw, most int64) {
	for i := range draws {
		if d := &draws[i]; d.n != 0 && d.a.terms.unit != "" {
			most = min(most, d.a.meter.State(now).Units())
		}
	}
	for i := range draws {
		if d := &draws[i]; d.n != 0 && d.a.terms.unit != "" {
			d.n = max(1, most)
		}
	}
}

// done ends the wait.
func (w *waiter) done(now instant) {
	w.at = now
	if w.granted {
		w.counts().grant(now)
	}
	w.ready <- struct{}{}
}

// over reports whether the wait has ended.
func (w *waiter) over() bool { return w.granted || w.err != nil }

// list puts w among the waiters of its scope and of the engine.
func (e *engine) list(now instant, w *waiter) {
	s := w.scope
	w.next = s.waiters
	if s.waiters != nil {
		s.waiters.prev = w
	}
	s.waiters = w
	s.waiting++
	e.waiting++
	if w.expires != never {
		heap.Push(&e.expiry, w)
		e.watch(now)
	}
}

// unlist undoes list.
func (e *engine) unlist(w *waiter) {
	s := w.scope
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		s.waiters = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	s.waiting--
	e.waiting--
	if w.inExpiry > 0 {
		heap.Remove(&e.expiry, w.inExpiry-1)
		if len(e.expiry) == 0 {
			e.timer.Stop()
			e.wake = never
		}
	}
}

// watch sets the timer by which waits that became too long are ended.
func (e *engine) watch(now instant) {
	if len(e.expiry) == 0 {
		return
	}
	t := e.expiry[0].expires
	switch {
	case e.timer == nil:
		e.wake = t
		e.timer = time.AfterFunc(t.Until(now), e.expire)
	case e.wake == never || t < e.wake:
		e.wake = t
		e.timer.Reset(t.Until(now))
	}
}

// expire refuses those whose time is up, unless there is room for them just now.
func (e *engine) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.wake = never
	for len(e.expiry) > 0 && e.expiry[0].expires <= now {
		w := e.expiry[0]
		e.retry(w)
		if e.run(now); !w.over() {
			e.refuse(now, w, w.tooLong(now))
		}
	}
	e.run(now)
	e.watch(now)
}

// refuse ends a wait without a grant.
func (e *engine) refuse(now instant, w *waiter, err *Error) {
	w.err = err
	e.leave(w)
	w.done(now)
}

// expiries is a heap of waiters by when they are refused.
type expiries []*waiter

func (h expiries) Len() int           { return len(h) }
func (h expiries) Less(i, j int) bool { return h[i].expires < h[j].expires }
func (h expiries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inExpiry, h[j].inExpiry = i+1, j+1
}

// Push is for container/heap.
func (h *expiries) Push(x any) {
	w := x.(*waiter)
	*h = append(*h, w)
	w.inExpiry = len(*h)
}

// Pop is for container/heap.
func (h *expiries) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.inExpiry = 0
	return w
}
