package breaker

import (
	"container/list"
	"math"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

const (
	// maxWaiting bounds how many requests wait for one circuit.
	maxWaiting = 10000
	// lastChances is how far apart grown open periods are ended early for
	// requests whose time runs out: the price of the promise that an outage
	// shorter than their deadlines costs them nothing.
	lastChances = time.Second
	// catchUp is how late the release of a line may be and still make up for
	// it: timers are, and a stalled process must not make a herd of it.
	catchUp = 10 * time.Millisecond
	// ease is how many times as far apart those in line are released as they came.
	// The host, just back from an outage, so gets a third more than it was asked
	// for while it was down, and with those whom nobody stopped, such as retries
	// that were about to go, not half as much more. Twice as far would be just
	// too little.
	ease = 3
	// farthest is how far apart they are at most: no host minds ten a second more.
	farthest = 100 * time.Millisecond
)

// line is who waits for a circuit. Those at the wire hold budget and places
// already, so they go first.
type line struct {
	wire, door list.List // of *waiter
	timer      *time.Timer
	gap        time.Duration // closed: between two that are released
	next       time.Time     // closed: when the next one is
	inTurn     bool          // closed: whose time runs out before is refused
}

// waiter is one request in line. Its goroutine waits for settled, after which
// pass and err are its own.
type waiter struct {
	by      trip.Layer
	trip    *trip.Trip
	r       *http.Request
	place   *list.Element
	since   time.Time
	until   time.Time // it gives up then
	chance  time.Time // from then on it goes as a probe before the open period ends, if that may be
	late    error     // why then: the deadline, or nil for Patience
	hopes   bool      // it waits for a probe that is under way, and for no other
	pass    pass
	err     error
	done    bool
	settled chan struct{}
}

func (l *line) len() int { return l.wire.Len() + l.door.Len() }

func (l *line) queue(by trip.Layer) *list.List {
	if by == trip.Meter {
		return &l.wire
	}
	return &l.door
}

func (l *line) first() *waiter {
	e := l.wire.Front()
	if e == nil {
		e = l.door.Front()
	}
	return e.Value.(*waiter)
}

// add puts w where it belongs by its arrival: one that has been in line before
// is older than those behind it.
func (l *line) add(w *waiter) {
	q := l.queue(w.by)
	if w.trip.Order == 0 {
		w.trip.Order = w.trip.Table().Arrive()
	}
	e := q.Back()
	for e != nil && e.Value.(*waiter).trip.Order > w.trip.Order {
		e = e.Prev()
	}
	if e == nil {
		w.place = q.PushFront(w)
	} else {
		w.place = q.InsertAfter(w, e)
	}
}

// settle takes w out of the line and tells its goroutine.
func (l *line) settle(w *waiter, p pass, err error) {
	l.queue(w.by).Remove(w.place)
	w.pass, w.err, w.done = p, err, true
	close(w.settled)
}

func (l *line) settleAll(err error) {
	for l.len() > 0 {
		l.settle(l.first(), pass{}, err)
	}
	l.stop()
}

func (l *line) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// ramp spreads those in line: as ease has it, or less far apart if somebody's time
// would end before his turn, but no closer than they came: then the host gets
// twice what it was asked for. The first goes as late as if the probes that went
// just before had been released, too.
func (l *line) ramp(now time.Time, probes int) {
	if l.len() == 0 {
		return
	}
	oldest, n, gap := now, 0, time.Duration(math.MaxInt64)
	for _, q := range [...]*list.List{&l.wire, &l.door} {
		for e := q.Front(); e != nil; e = e.Next() {
			w := e.Value.(*waiter)
			if w.since.Before(oldest) {
				oldest = w.since
			}
			n++
			gap = min(gap, w.last().Sub(now)/time.Duration(n+probes))
		}
	}
	least := now.Sub(oldest) / time.Duration(n)
	l.gap = min(max(least, min(gap, ease*least)), farthest)
	l.next = now.Add(min(l.gap*time.Duration(probes), farthest))
}

// last is when w must go if the circuit is closed. Patience ends when it goes, a
// deadline when it has its answer.
func (w *waiter) last() time.Time {
	if w.late == nil {
		return w.until
	}
	return w.chance
}

// dispatch lets those pass whose turn it is and sets the timer for the next.
// mu is held.
func (c *circuit) dispatch(now time.Time) {
	l := &c.line
	for l.len() > 0 {
		switch {
		case c.state == Closed:
			if l.next.After(now) {
				c.arm(now, l.next)
				return
			}
			if earliest := now.Add(-catchUp); l.next.Before(earliest) {
				l.next = earliest
			}
			l.next = l.next.Add(l.gap)
			l.settle(l.first(), c.pass(), nil)
		case !c.due(now):
			c.arm(now, c.next(now))
			return
		case l.wire.Len() > 0:
			w := l.first()
			p, ok := c.begin(w.trip, now)
			if !ok {
				c.arm(now, now.Add(minOpenFor))
				return
			}
			l.settle(w, p, nil)
		case c.candidate.taken(now, candidateLease):
			c.arm(now, c.candidate.at.Add(candidateLease))
			return
		default:
			w := l.first()
			if c.mute { // an answer may take as long as anybody waits for it
				w = l.door.Back().Value.(*waiter)
			}
			l.settle(w, c.nominate(w.trip, now), nil)
		}
	}
	l.stop()
}

func (c *circuit) arm(now, at time.Time) {
	if c.line.timer == nil {
		c.line.timer = time.AfterFunc(at.Sub(now), c.wake)
		return
	}
	c.line.timer.Reset(at.Sub(now))
}

// wake is called by the timer. It does not tell the hook: that is for the
// goroutine of a request, which may panic.
func (c *circuit) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dispatch(time.Now())
}

// dismiss refuses those whose time ends before a probe may go, and those who waited
// for one that has failed, and lets those go who are not bound.
func (c *circuit) dismiss(now time.Time) {
	for _, q := range [...]*list.List{&c.line.wire, &c.line.door} {
		for e := q.Front(); e != nil; {
			w := e.Value.(*waiter)
			e = e.Next()
			if !c.bound(w.r) {
				c.line.settle(w, c.pass(), nil)
				continue
			}
			if w.hopes || w.until.Before(c.earliest) {
				c.refused++
				c.line.settle(w, pass{}, c.refusal(refuser(w.by), now, w.late, w.late))
			}
		}
	}
}

func (c *circuit) refusal(by notsent.By, now time.Time, cause, ctx error) *Error {
	state := c.state
	if state == Closed { // just closed, and its line is being released
		state = HalfOpen
	}
	return &Error{
		Host: c.host, Shard: c.shard, State: state,
		RetryAfter: max(0, c.expected(now).Sub(now)),
		by:         by, cause: cause, ctx: ctx,
	}
}
