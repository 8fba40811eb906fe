package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Waiter is a request that waits. It holds no units and no promise: all it has
// is its places in waitlists.
//
// Thousands may wait: counts are as small as they may be, and stand together. A search
// in a tree of waiters waits for memory at each that it passes. So what their order
// depends on is kept in the waiter, although it is the request's, and so is the place in
// one waitlist: most wait in no more.
type Waiter struct {
	*Request
	priority int    // Request.Priority
	seq      uint64 // Request.Seq
	id       uint64 // a number of its own: of two that came at once, the one that waited first goes first
	inGroup  branch[*Waiter]
	own      place     // one of places; its list is nil if it is free
	few      [1]*place // memory of places, as long as there is one at most

	Needs    []Need
	places   []*place
	aside    meter.Instant // until when another account lets it wait: leaving more waitlists before is not counted again
	left     meter.Instant // when it left the last
	version  uint32        // of its group, when its owner named Needs
	inExpiry int32         // index into the heap; -1: it is not in it
	turns    int8          // how many waitlists it left at left
	yielded  int8          // how often it left a waitlist because it waited longer elsewhere
	granted  bool
	forsaken bool // its caller gave up

	expires  meter.Instant // when it is refused; never: it is not
	Since    meter.Instant // when its wait began
	allowed  time.Duration // from its beginning until expires
	deadline meter.Instant // of its context; never: none
	prev     *Waiter       // in the order in which those of its group began to wait
	next     *Waiter

	ready   chan struct{} // has one element when the wait is over
	At      meter.Instant // when it was granted
	refused *Refusal      // why it was refused; nil: it was not
}

// newWaiter makes a waiter of q, which is its own from then on.
func newWaiter(q *Request, needs []Need) *Waiter {
	w := &Waiter{Request: q, priority: q.Priority, seq: q.Seq, ready: make(chan struct{}, 1), inExpiry: -1}
	w.places = w.few[:0]
	w.Needs = w.gates(append(make([]Need, 0, len(needs)+2), needs...))
	w.expires, w.deadline = meter.Never, meter.Never
	w.version = w.Group.version
	return w
}

// mayYield is how many times a waiter may leave a waitlist because it waits longer elsewhere.
// Then it keeps its places, so that others do not overtake it for ever. mayTurn is how many
// waitlists it may leave at one instant for one wait, which counts once: a request seldom draws
// on more accounts, and each time the waitlist is planned anew under the lock.
const (
	mayYield = 16
	mayTurn  = 4
)

// before reports whether w ranks before v.
func (w *Waiter) before(v *Waiter) bool {
	if w.priority != v.priority {
		return w.priority > v.priority
	}
	return w.older(v)
}

// older reports whether w came before v.
func (w *Waiter) older(v *Waiter) bool {
	if w.seq != v.seq {
		return w.seq < v.seq
	}
	return w.id < v.id
}

// level is a random number of w, for all trees that it is in. Most often those that wait
// stand in the same order in all of them, and then these trees have the same form: who
// looks for w in one of them has brought to the processor's cache what it passes in the
// others. It is the last step of SplitMix64 (Steele, Lea and Flood, 2014): nobody outside
// chooses what comes when.
func (w *Waiter) level() uint32 {
	x := w.id * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32(x >> 32)
}

// held reports whether w is still to be asked what it draws on now, before it may
// go: those that rank before it are asked first.
func (w *Waiter) held() bool {
	n := w.Group.line
	return n != nil && n.redraws && (n.redrawn == nil || n.redrawn.before(w))
}

// in returns w's place in a's waitlist, or nil.
func (w *Waiter) in(a *Account) *place {
	if a.waitlist != nil {
		for _, k := range w.places {
			if k.list == a.waitlist {
				return k
			}
		}
	}
	return nil
}

// opens is when l has room for w. If that is now, it is when all of w's waitlists have room, as
// l may have none by then.
func (w *Waiter) opens(now meter.Instant, l *waitlist) meter.Instant {
	t := l.account.At(now, drawn(w.Needs, l.account))
	if t > now {
		return t
	}
	for _, k := range w.places {
		t = max(t, k.list.account.At(now, k.units))
	}
	return t
}

// stuck reports whether w must await its turn in some waitlist.
func (w *Waiter) stuck() bool {
	return slices.ContainsFunc(w.places, func(k *place) bool { return k.list.head() != w })
}

// short reports whether there is no room for w at an account in whose waitlist it stands.
func (w *Waiter) short(now meter.Instant) bool {
	return slices.ContainsFunc(w.places, func(k *place) bool { return k.list.account.At(now, k.units) > now })
}

// yields reports whether w, the head of l, should leave l: there is room for it,
// and what others take meanwhile will be there again when it needs it.
func (w *Waiter) yields(now meter.Instant, l *waitlist) bool {
	k := w.in(l.account)
	if k == nil || len(w.places) < 2 || l.account.At(now, k.units) > now {
		return false
	}
	wait := now
	for _, o := range w.places {
		switch a := o.list.account; {
		case o == k:
		case o.list.head() == w:
			wait = max(wait, a.At(now, o.units))
		default:
			wait = max(wait, a.Meter.ETA(max(now, a.Paused), o.list.ranks.total()-o.units, o.units))
		}
	}
	regain := l.account.Meter.Regain(k.units)
	if wait <= now.Add(regain) {
		return false
	}
	if w.left != now {
		w.left, w.turns = now, 0
	}
	free := regain <= 0 // others take nothing away from it there
	if (free || now < w.aside) && w.turns < mayTurn {
		w.turns++
		return true
	}
	if free || w.yielded >= mayYield {
		return false
	}
	w.yielded++
	if wait != meter.Never {
		w.aside = wait
	}
	return true
}

// stretch sets the units of needs to as many as there is room for, most of them at most; see
// Request.UpTo.
func stretch(now meter.Instant, needs []Need, most int64) {
	for i := range needs {
		if d := &needs[i]; d.N != 0 && d.Account.Label.Unit != "" {
			most = min(most, d.Account.Meter.State(now).Units())
		}
	}
	for i := range needs {
		if d := &needs[i]; d.N != 0 && d.Account.Label.Unit != "" {
			d.N = max(1, most)
		}
	}
}

// done ends the wait.
func (w *Waiter) done(now meter.Instant) {
	w.At = now
	w.ready <- struct{}{}
}

// Waits reports whether w still waits.
func (w *Waiter) Waits() bool { return w.next != nil || w.Group.line != nil && w.Group.line.last == w }

// over reports whether the wait has ended.
func (w *Waiter) over() bool { return w.granted || w.forsaken || w.refused != nil }

// list puts w among the waiters of its group and of the domain.
func (e *Domain) list(now meter.Instant, w *Waiter) {
	s := w.Group
	if w.id = e.of.waiters.Add(1); w.Seq == 0 {
		w.Seq, w.seq = w.id, w.id
	}
	if s.line == nil {
		s.line = new(line)
	}
	s.line.enter(w)
	s.Waiting++
	e.Waiting++
	c := e.gather()
	c.count(w, 1)
	if w.expires != meter.Never {
		c.expiry.push(w)
		e.watch(now)
	}
}

// count adds n to how many waiters draw on each account of w that has no group.
func (c *crowd) count(w *Waiter, n int) {
	for i := range w.Needs {
		if a := w.Needs[i].Account; a.Group == nil {
			c.draw(a, n)
		}
	}
}

func (c *crowd) draw(a *Account, n int) {
	if c.drawn == nil {
		c.drawn = make(map[*Account]int)
	}
	if c.drawn[a] += n; c.drawn[a] == 0 {
		delete(c.drawn, a)
	}
}

// Drawn reports whether a request that waits draws on a, which has no group, even if it is
// short only of other accounts.
func (e *Domain) Drawn(a *Account) bool { return e.crowd != nil && e.crowd.drawn[a] > 0 }

// unlist undoes list.
func (e *Domain) unlist(w *Waiter) {
	s := w.Group
	e.crowd.count(w, -1)
	if s.line.quit(w); s.line.first == nil {
		s.line = nil
	}
	s.Waiting--
	e.Waiting--
	c := e.crowd
	if i := int(w.inExpiry); i >= len(c.expiry) || i >= 0 && c.expiry[i].w != w {
		w.inExpiry = -1 // a stray
	} else if i >= 0 {
		c.expiry.remove(i)
		if len(c.expiry) == 0 {
			c.timer.Stop()
			c.wake = meter.Never
		}
	}
	if e.Waiting == 0 {
		e.scatter()
	}
}

// refuse ends a wait without a grant.
func (e *Domain) refuse(now meter.Instant, w *Waiter, r *Refusal) {
	w.refused = r
	e.leave(w)
	w.done(now)
}
