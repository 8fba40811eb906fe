package queue

import (
	"container/heap"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// share is the guaranteed share of the lower classes of a waitlist: of share
// grants made while one of them waits, at least one goes to them. Eight leaves most to the
// highest class, and still serves the others.
const share = 8

// A waitlist is the waiters that are short of one account. Its order is this:
//
// Of the classes that wait, the highest goes first, except that every 8th
// grant made while a lower class waits goes to the waiter of the lower ones
// that arrived first. Within a class, lanes take turns. Within a lane, the
// order is that of arrival, and a retry has its request's.
//
// The waiter whose turn it is, the head, keeps its turn until it is granted, so that
// a large request is not starved by smaller ones. There are two exceptions.
//
// If there is room for the head here, but it is short of another account, others wait for it
// here only if the units that they would take could not come back in the time that it still
// has to wait there. Otherwise it leaves this waitlist, waits in the other one, and returns to
// its place if this account is short then. So a request that waits an hour for its route does
// not hold up the host. It does so for 16 waits at most (mayYield), or the same number of times
// if only an event ends the wait. Then it keeps its places, so that limits in flight that
// overlap and are always full do not starve it. If the units of an account come back at once,
// as those of a gate that only pauses, nobody waits there for the head.
//
// If the head must also await its turn in another waitlist, waiters that rank before
// it (of a higher class, or older) may pass it. So of any waiters that await one
// another's turns, the first in rank can always go.
type waitlist struct {
	account *Account
	ranks   tree[*place, byRank]
	ages    tree[*place, byAge] // the same
	classes map[int]*class      // that wait, by priority
	old     heaped[*class, byOldest]
	passed  int // grants to the highest class since a lower one waits or had its share
	dirty   bool
	at      int           // in the domain's waitlists
	first   meter.Instant // when the first wait in it ends, or before
	wake    meter.Instant // when timer fires; never: it does not
	timer   *time.Timer
}

// class is the waiters of one priority in a waitlist.
type class struct {
	priority int
	oldest   *place
	lanes    map[string]*lane
	turn     *lane // whose turn it is, in a ring
	n        int
	units    int64
	inOld    int // index into the heap
}

// lane is the waiters of one lane in a class.
type lane struct {
	class      *class
	name       string
	q          tree[*place, inLane]
	next, prev *lane
}

// place is a waiter's place in one waitlist.
type place struct {
	waiter *Waiter
	units  int64
	list   *waitlist
	lane   *lane
	inRank branch[*place]
	inAge  branch[*place]
	inLane branch[*place]
}

func (l *waitlist) len() int { return l.ranks.len() }

// head is whose turn it is. The waitlist is not empty.
func (l *waitlist) head() *Waiter {
	return l.now().turn.q.min.waiter
}

// now is the class whose turn it is.
func (l *waitlist) now() *class {
	top := l.top()
	if len(l.classes) == 1 || l.passed < share-1 {
		return top
	}
	if low := l.old.a[0]; low != top {
		return low
	}
	low := l.old.a[1] // the second of a heap is one of the two below the first
	if len(l.old.a) > 2 && l.old.Less(2, 1) {
		low = l.old.a[2]
	}
	return low
}

// oldest is the first in rank: the oldest of the highest class.
func (l *waitlist) oldest() *Waiter { return l.ranks.min.waiter }

// top is the highest class.
func (l *waitlist) top() *class { return l.ranks.min.lane.class }

// add puts w at its place.
func (l *waitlist) add(w *Waiter, n int64) {
	c := l.classes[w.Priority]
	if c == nil {
		c = l.newClass(w.Priority)
	}
	ln := c.lanes[w.Lane]
	if ln == nil {
		ln = c.newLane(w.Lane)
	}
	k := w.take(place{waiter: w, units: n, list: l, lane: ln})
	if l.len() == 0 {
		l.first = meter.Never
	}
	l.first = min(l.first, w.ends())
	level := w.level()
	l.ranks.insert(k, level)
	l.ages.insert(k, level)
	ln.q.insert(k, level)
	c.n++
	c.units += n
	switch {
	case c.n == 1:
		c.oldest = k
		heap.Push(&l.old, c)
		if len(l.classes) == 2 && l.top() != c { // a lower one begins to wait
			l.passed = 0
		}
	case w.before(c.oldest.waiter):
		c.oldest = k
		heap.Fix(&l.old, c.inOld)
	}
}

// take adds k to w's places and returns where it is kept.
func (w *Waiter) take(k place) *place {
	at := &w.own
	if at.list != nil {
		at = new(place)
	}
	*at = k
	w.places = append(w.places, at)
	return at
}

// newClass makes a class for the first of its priority.
func (l *waitlist) newClass(priority int) *class {
	if l.classes == nil {
		l.classes = make(map[int]*class)
	}
	c := &class{priority: priority, lanes: make(map[string]*lane)}
	l.classes[priority] = c
	return c
}

// newLane puts a lane at the end of the round.
func (c *class) newLane(name string) *lane {
	ln := &lane{class: c, name: name}
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
func (l *waitlist) remove(k *place, granted bool) {
	c, ln := k.lane.class, k.lane
	if granted {
		l.count(c)
		if c.turn == ln {
			c.turn = ln.next
		}
	}
	l.ranks.remove(k)
	l.ages.remove(k)
	ln.q.remove(k)
	c.n--
	c.units -= k.units
	switch {
	case c.n == 0:
		heap.Remove(&l.old, c.inOld)
		delete(l.classes, c.priority)
	case c.oldest == k:
		c.oldest = l.ranks.from(func(o *place) bool { return o.waiter.priority > c.priority })
		heap.Fix(&l.old, c.inOld)
	}
	if ln.q.len() == 0 {
		if c.turn == ln {
			c.turn = ln.next
		}
		ln.prev.next, ln.next.prev = ln.next, ln.prev
		delete(c.lanes, ln.name)
	}
}

// count notes a grant to class c.
func (l *waitlist) count(c *class) {
	if c != l.top() || len(l.classes) == 1 {
		l.passed = 0
		return
	}
	l.passed++
}

// ahead estimates how many units are granted before those of q, which may have arrived before
// some that wait.
func (l *waitlist) ahead(q *Request) int64 {
	sum := int64(0)
	if c := l.classes[q.Priority]; c != nil {
		sum = c.ahead(q)
	}
	if l.len() > 0 && l.top().priority > q.Priority {
		higher, _ := l.ranks.before(func(k *place) bool { return k.waiter.priority > q.Priority })
		sum = min(sum+higher, l.shared(q))
	}
	return sum
}

// shared is what goes before q, of a lower class, if that goes by the share of
// all lower classes: those of them that are older, and share-1 of the highest
// before each.
func (l *waitlist) shared(q *Request) int64 {
	top := l.top()
	sum, older := l.ages.total()-top.units, l.len()-top.n
	if q.Seq > 0 {
		sum, older = l.ages.before(func(k *place) bool { return k.waiter.seq < q.Seq })
		units, n := l.ranks.before(func(k *place) bool { return k.lane.class == top && k.waiter.seq < q.Seq })
		sum, older = sum-units, older-n
	}
	turns := (share - 1) * (older + 1)
	if len(l.classes) > 1 {
		turns = max(0, turns-l.passed)
	}
	if turns >= top.n {
		return sum + top.units
	}
	return sum + int64(float64(top.units)*float64(turns)/float64(top.n))
}

// ahead is what goes first in the class if lanes take turns.
func (c *class) ahead(q *Request) int64 {
	others, own, depth := c.units, int64(0), 1
	lanes, waiters := len(c.lanes), c.n
	if ln := c.lanes[q.Lane]; ln != nil {
		others -= ln.q.total()
		own, depth = ln.older(q.Seq)
		depth++
		lanes--
		waiters -= ln.q.len()
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
	if seq == 0 {
		return ln.q.total(), ln.q.len()
	}
	return ln.q.before(func(k *place) bool { return k.waiter.seq < seq })
}
