package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Group is the requests that have the same limits: those of a key
// of a Limiter, of a host, or of a partition of a host. Its fields are read and written
// under the domain's lock.
type Group struct {
	Gate    Account // all its requests draw on it; it has no limit, but may be paused
	line    *line   // nil: nobody waits
	Waiting int32   // requests that wait
	version uint32  // changes when its requests draw on other accounts than before
}

// A line is all that wait in a group.
type line struct {
	ranks   tree[*Waiter, inGroup]
	first   *Waiter // of those that wait, in the order in which they began to
	last    *Waiter
	oldest  uint64  // Request.Seq of the first request that arrived since nobody waited
	newest  uint64  // Request.Seq of the last one
	came    int     // how many arrived since nobody waited, including those that gave up
	redraws bool    // a Redraw is under way
	redrawn *Waiter // the last waiter that the Redraw has asked, which may have gone since; nil: none yet
}

// after is the waiter that ranks next after w, or the first if w is nil; nil: there is none.
func (n *line) after(w *Waiter) *Waiter { return n.ranks.from(w.passed) }

// passed reports whether v is w or ranks before it; nothing ranks before nil.
func (w *Waiter) passed(v *Waiter) bool { return w != nil && !w.before(v) }

// Walk calls f for the waiters of g in the order of their ranks, until f returns false. It
// begins after w, which need not wait any longer, or with the first if w is nil. f must not
// grant or refuse any.
func (g *Group) Walk(w *Waiter, f func(w *Waiter) bool) {
	if g.line != nil {
		g.line.ranks.walk(g.line.ranks.root, w.passed, f)
	}
}

// Oldest is the waiter of g that has waited longest; nil: nobody waits.
func (g *Group) Oldest() *Waiter {
	if g.line == nil {
		return nil
	}
	return g.line.first
}

// Came is how many requests arrived since nobody waited, including those that gave up, and the
// time from the first to the last of them. If each caller sends its next request when the last
// one has ended, none arrives while all callers wait; that time does not count.
func (g *Group) Came() (n int, within time.Duration) {
	if g.line == nil || g.line.newest < g.line.oldest {
		return 0, 0
	}
	return g.line.came, time.Duration(g.line.newest - g.line.oldest)
}

// enter puts w at the end of those that wait, and quit takes it out.
func (n *line) enter(w *Waiter) {
	if n.came++; n.came == 1 {
		n.oldest = w.Seq
	}
	n.newest = max(n.newest, w.Seq)
	n.ranks.insert(w, w.level())
	if w.prev = n.last; w.prev != nil {
		w.prev.next = w
	} else {
		n.first = w
	}
	n.last = w
}

func (n *line) quit(w *Waiter) {
	n.ranks.remove(w)
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		n.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		n.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// redraws reports whether those that wait in g are being asked anew what they draw
// on: until then nobody passes them.
func (g *Group) redraws() bool { return g.line != nil && g.line.redraws }

// A Request is what the queue knows of a request.
type Request struct {
	Group    *Group
	Host     *Group   // whose gate counts too; nil: none
	Seq      uint64   // its place in the order of arrival (Domain.Arrive); zero: it comes last
	Priority int      // higher goes first
	Lane     string   // lanes of one priority take turns
	Held     bool     // its units are held until the answer, see package meter
	UpTo     int64    // of a request that takes a part if not all: how many units it wants; zero: it takes its needs or nothing
	Alone    *Account // while the request is short of this, it waits for no other account; nil: there is none
	By       Owner    // set if the request may wait
}

// An Owner is asked about its request while that waits. It is called with the domain's lock
// held, and must not call the domain.
type Owner interface {
	// Needs appends what the request draws on at now.
	Needs(now meter.Instant, buf []Need) []Need

	// Doubts reports that what was learned of the request's accounts may not apply to it,
	// because it was learned from other requests. Then only configured limits are certain,
	// and what Barred returns.
	Doubts() bool

	// Barred returns an account that certainly does not let the request through before
	// until. If there is none, until is not after now.
	Barred(now meter.Instant) (until meter.Instant, a *Account)
}

// gates appends the needs of the gates, which only requests that wait have.
func (q *Request) gates(buf []Need) []Need {
	buf = append(buf, Need{Account: &q.Group.Gate, N: 1})
	if q.Host != nil {
		buf = append(buf, Need{Account: &q.Host.Gate, N: 1})
	}
	return buf
}

// gateCount is how many gates appends.
func (q *Request) gateCount() int {
	if q.Host != nil {
		return 2
	}
	return 1
}

// Shut returns a gate that q may not pass now; nil: there is none.
func (q *Request) Shut(now meter.Instant) *Account {
	if g := &q.Group.Gate; !g.Clear(now) || q.Group.redraws() {
		return g
	}
	if q.Host != nil && !q.Host.Gate.Clear(now) {
		return &q.Host.Gate
	}
	return nil
}

// answeredAt is what Permit.Answered is for q just after it was granted.
func (q *Request) answeredAt(granted meter.Instant) meter.Instant {
	if q.Held {
		return 0
	}
	return granted
}
