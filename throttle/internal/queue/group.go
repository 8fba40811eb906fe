package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Group is what requests have in common that wait for the same limits: a key
// of a Limiter; a host, or a partition of it. Its fields are read and written
// under the domain's lock.
type Group struct {
	Gate    Account // every request waits for it: pauses
	line    *line   // nil: nobody waits
	Waiting int32   // requests
	version uint32  // of what those that wait draw on
}

// A line is all that wait in a group.
type line struct {
	ranks   tree[*Waiter, inGroup]
	first   *Waiter // of those that wait, in the order in which they began to
	last    *Waiter
	oldest  uint64  // Request.Seq of the first that arrived since nobody waited
	newest  uint64  // that of the last
	came    int     // that arrived since nobody waited, those included that gave up
	redraws bool    // a Redraw is under way
	redrawn *Waiter // it has come as far as the rank of this one, who may have gone; nil: to nobody yet
}

// after is the one that ranks next after w; nil: there is none. The first ranks
// after nil.
func (n *line) after(w *Waiter) *Waiter { return n.ranks.from(w.passed) }

// passed reports whether v is w or ranks before it; nothing ranks before nil.
func (w *Waiter) passed(v *Waiter) bool { return w != nil && !w.before(v) }

// Walk calls f for the waiters of g by rank, as long as it reports true, beginning with
// the one that ranks next after w, which may have gone since; nil: with the first. f must
// not grant or refuse any.
func (g *Group) Walk(w *Waiter, f func(w *Waiter) bool) {
	if g.line != nil {
		g.line.ranks.walk(g.line.ranks.root, w.passed, f)
	}
}

// Oldest is the one of g's waiters that waits longest; nil: nobody waits.
func (g *Group) Oldest() *Waiter {
	if g.line == nil {
		return nil
	}
	return g.line.first
}

// Came is how many arrived since nobody waited, those included that gave up, and within what
// time: callers that send the next request when the last has ended arrive no more as long
// as all of them wait.
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
	n.ranks.insert(w)
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
	Seq      uint64   // its place in the order of arrival; zero: it comes last
	Priority int      // higher goes first
	Lane     string   // lanes of one priority take turns
	Held     bool     // its units count until the answer
	UpTo     int64    // of a request for a part: as many as it wants; zero: all its needs
	Alone    *Account // as long as this is short, the request waits for nothing else; nil: none
	By       Owner    // of one that waits: whose it is
}

// An Owner is whose request waits.
type Owner interface {
	// Needs appends what the request draws on as of now.
	Needs(now meter.Instant, buf []Need) []Need

	// Doubts reports that what was learned of its accounts may not hold for the
	// request, as it was learned of others: of these nothing is certain but what
	// Barred says, the account and until when it lets the request not through.
	Doubts() bool
	Barred(now meter.Instant) (until meter.Instant, a *Account)
}

// gates appends the gates, which those that wait may wait for.
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

// Shut is a gate that q may not pass now, or nil.
func (q *Request) Shut(now meter.Instant) *Account {
	if g := &q.Group.Gate; !g.Clear(now) || q.Group.redraws() {
		return g
	}
	if q.Host != nil && !q.Host.Gate.Clear(now) {
		return &q.Host.Gate
	}
	return nil
}

// answeredAt is the Permit.Answered of what q was just granted.
func (q *Request) answeredAt(granted meter.Instant) meter.Instant {
	if q.Held {
		return 0
	}
	return granted
}
