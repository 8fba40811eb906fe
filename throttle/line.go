package throttle

import (
	"container/heap"
	"sort"
	"time"
)

// share is the guaranteed share of the lower classes of a line: of share
// grants made while one of them waits, at least one is theirs.
const share = 8

// line is those that were found short of one account. Its order is this:
//
// Of the classes that wait, the highest goes first, except that every 8th
// grant made while a lower class waits goes to the waiter of the lower ones
// that arrived first. Within a class, lanes take turns. Within a lane, the
// order is that of arrival, and a retry has its request's.
//
// The waiter whose turn it is, the pick, keeps it until it is granted, so that
// a large request is not starved by smaller ones. Two things move it aside.
//
// If there is room for the pick here, but it is short of another account, the
// line is held for it only if what it holds up could not be had again in the
// time it still has to wait there. Otherwise it leaves this line, waits in the
// other, and comes back to its place if it finds this account short then: a
// request that waits an hour for its route does not hold up the host. It does so
// for 16 waits at most, or as often where only an event ends the wait, and then
// holds its places, so that limits in flight that overlap, each of them always
// full, do not starve it.
//
// If the pick must also await its turn in another line, those that rank before
// it (of a higher class, or older) may pass it. Of any waiters that await one
// another's turns, the first in rank can therefore always go.
type line struct {
	a       *account
	classes []*class // that wait, highest first
	passed  int      // grants to the highest class since a lower one waits or had its share
	n       int
	units   int64
	dirty   bool
	first   instant // when the first wait in it ends, or before
	wake    instant // when timer fires; never: it does not
	timer   *time.Timer
}

// class is the waiters of one priority in a line.
type class struct {
	priority int
	all      claims // oldest on top
	lanes    map[string]*lane
	turn     *lane // whose turn it is, in a ring
	units    int64
}

// lane is the waiters of one lane in a class.
type lane struct {
	name       string
	q          claims // oldest on top
	next, prev *lane
	units      int64
	newest     uint64 // seq of all that came
}

// claim is a waiter's place in one line.
type claim struct {
	w       *waiter
	n       int64
	line    *line
	class   *class
	lane    *lane
	inClass int // indexes into the heaps
	inLane  int
}

func (l *line) size() int { return l.n }

// pick is whose turn it is. The line is not empty.
func (l *line) pick() *waiter {
	return l.now().turn.q.a[0].w
}

// now is the class whose turn it is.
func (l *line) now() *class {
	top := l.classes[0]
	if len(l.classes) == 1 || l.passed < share-1 {
		return top
	}
	low := l.classes[1]
	for _, c := range l.classes[2:] {
		if c.all.a[0].w.seq < low.all.a[0].w.seq {
			low = c
		}
	}
	return low
}

// oldest is the first in rank: the oldest of the highest class.
func (l *line) oldest() *waiter { return l.classes[0].all.a[0].w }

// add puts w at its place.
func (l *line) add(w *waiter, n int64) {
	i := sort.Search(len(l.classes), func(i int) bool { return l.classes[i].priority <= w.priority })
	if i == len(l.classes) || l.classes[i].priority != w.priority {
		c := &class{priority: w.priority, lanes: make(map[string]*lane), all: claims{byClass: true}}
		l.classes = append(l.classes, nil)
		copy(l.classes[i+1:], l.classes[i:])
		l.classes[i] = c
		if i == 1 && len(l.classes) == 2 { // a lower one begins to wait
			l.passed = 0
		}
	}
	c := l.classes[i]
	ln := c.lanes[w.lane]
	if ln == nil {
		ln = c.newLane(w.lane)
	}
	k := &claim{w: w, n: n, line: l, class: c, lane: ln}
	heap.Push(&c.all, k)
	heap.Push(&ln.q, k)
	if l.n == 0 {
		l.first = never
	}
	l.first = min(l.first, w.ends())
	l.n++
	l.units += n
	c.units += n
	ln.units += n
	ln.newest = max(ln.newest, w.seq)
	w.claims = append(w.claims, k)
}

// newLane puts a lane at the end of the round.
func (c *class) newLane(name string) *lane {
	ln := &lane{name: name}
	if c.turn == nil {
		ln.next, ln.prev, c.turn = ln, ln, ln
	} else {
		ln.next, ln.prev = c.turn, c.turn.prev
		ln.prev.next, ln.next.prev = ln, ln
	}
	c.lanes[name] = ln
	return ln
}

// remove takes a waiter out. If it was granted, the turn goes on.
func (l *line) remove(k *claim, granted bool) {
	c, ln := k.class, k.lane
	if granted {
		l.count(c)
		if c.turn == ln {
			c.turn = ln.next
		}
	}
	heap.Remove(&c.all, k.inClass)
	heap.Remove(&ln.q, k.inLane)
	l.n--
	l.units -= k.n
	c.units -= k.n
	ln.units -= k.n
	if len(ln.q.a) == 0 {
		if c.turn == ln {
			c.turn = ln.next
		}
		ln.prev.next, ln.next.prev = ln.next, ln.prev
		delete(c.lanes, ln.name)
	}
	if len(c.all.a) == 0 {
		i := 0
		for l.classes[i] != c {
			i++
		}
		l.classes = append(l.classes[:i], l.classes[i+1:]...)
	}
}

// count notes a grant to class c.
func (l *line) count(c *class) {
	if c != l.classes[0] || len(l.classes) == 1 {
		l.passed = 0
		return
	}
	l.passed++
}

// ahead estimates how many units are granted before those of q, which may be
// older than some that wait.
func (l *line) ahead(q *ask) int64 {
	var sum int64
	for _, c := range l.classes {
		switch {
		case c.priority > q.priority:
			sum += c.units
		case c.priority == q.priority:
			sum += c.ahead(q)
		}
	}
	if len(l.classes) > 0 && l.classes[0].priority > q.priority {
		sum = min(sum, l.shared(q))
	}
	return sum
}

// shared is what goes before q, of a lower class, if that goes by the share of
// all lower classes: those of them that are older, and share-1 of the highest
// before each.
func (l *line) shared(q *ask) int64 {
	top, sum, older := l.classes[0], int64(0), 0
	for _, c := range l.classes[1:] {
		units, n := c.units, len(c.all.a)
		if q.seq > 0 {
			units, n = c.all.older(q.seq)
		}
		sum, older = sum+units, older+n
	}
	turns := (share - 1) * (older + 1)
	if len(l.classes) > 1 {
		turns = max(0, turns-l.passed)
	}
	if turns >= len(top.all.a) {
		return sum + top.units
	}
	return sum + int64(float64(top.units)*float64(turns)/float64(len(top.all.a)))
}

// ahead is what goes first in the class if lanes take turns.
func (c *class) ahead(q *ask) int64 {
	others, own, depth := c.units, int64(0), 1
	lanes, waiters := len(c.lanes), len(c.all.a)
	if ln := c.lanes[q.lane]; ln != nil {
		others -= ln.units
		own, depth = ln.older(q.seq)
		depth++
		lanes--
		waiters -= len(ln.q.a)
	}
	if lanes <= 0 {
		return own
	}
	if turns := lanes * depth; turns < waiters { // not all of the others go first
		others = int64(float64(others) * float64(turns) / float64(waiters))
	}
	return own + others
}

// older is how many units, and how many waiters, were there before seq; zero
// is a newcomer's.
func (ln *lane) older(seq uint64) (units int64, n int) {
	if seq == 0 || seq > ln.newest {
		return ln.units, len(ln.q.a)
	}
	return ln.q.older(seq)
}

// claims is a heap of places, by arrival.
type claims struct {
	a       []*claim
	byClass bool
}

// older is how many units, and how many waiters, were there before seq.
func (h *claims) older(seq uint64) (units int64, n int) {
	for _, k := range h.a {
		if k.w.seq < seq {
			units, n = units+k.n, n+1
		}
	}
	return units, n
}

func (h *claims) Len() int           { return len(h.a) }
func (h *claims) Less(i, j int) bool { return h.a[i].w.seq < h.a[j].w.seq }
func (h *claims) Swap(i, j int) {
	h.a[i], h.a[j] = h.a[j], h.a[i]
	h.set(i)
	h.set(j)
}

func (h *claims) set(i int) {
	if h.byClass {
		h.a[i].inClass = i
	} else {
		h.a[i].inLane = i
	}
}

// Push is for container/heap.
func (h *claims) Push(x any) {
	h.a = append(h.a, x.(*claim))
	h.set(len(h.a) - 1)
}

// Pop is for container/heap.
func (h *claims) Pop() any {
	last := len(h.a) - 1
	k := h.a[last]
	h.a[last] = nil
	h.a = h.a[:last]
	return k
}
