package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What has to be done for each of many who wait is done in slices: in between the
// lock is given up, so that an answer or a newcomer need not wait for all of them.
// Nobody is granted out of turn meanwhile, as whoever waits stays in its waitlists.
const (
	// slice is how many waiters are passed by before the lock is given up: a
	// millisecond or two where they are not in the processor's cache.
	slice = 8000

	// look is as how many of these one counts that is looked at: its accounts are
	// asked, or it is refused.
	look = 8
)

// A review looks at all that wait in a group and refuses those whose wait certainly
// cannot end in time any more. Those that come later need none: Queue does the same.
type review struct {
	group *Group
	until meter.Instant // those whose time ends later are passed by
	next  *Waiter       // the first that is still to be looked at; nil: all were
	again bool          // once more, from the beginning
	list  *waitlist     // only those in it, the first of whose ends is to be found; nil: all
	first meter.Instant // of the ends of those that stay
}

// Recheck refuses those of g whose wait certainly cannot end in time any more,
// even if nobody else waited. It looks only at those whose time ends before the
// given instant: it is known that nobody has to wait for longer.
func (e *Domain) Recheck(now meter.Instant, g *Group, until meter.Instant) {
	e.review(now, g, nil, until)
	e.Run(now)
}

// review begins a review and reports whether it has refused somebody already.
// What is left of it follows by itself. Run has to follow.
func (e *Domain) review(now meter.Instant, g *Group, l *waitlist, until meter.Instant) bool {
	c := e.crowd
	if c == nil || g.waiters == nil {
		return false
	}
	i := slices.IndexFunc(c.reviews, func(r *review) bool { return r.group == g && r.list == l })
	if i < 0 {
		c.reviews = append(c.reviews, &review{group: g, until: until, next: g.waiters, list: l, first: meter.Never})
	} else {
		r := c.reviews[i]
		r.again, r.until = true, max(r.until, until)
	}
	if c.working {
		return false // a slice was done already
	}
	return e.work(now)
}

// work does a slice of the reviews and reports whether it has refused somebody.
func (e *Domain) work(now meter.Instant) (refused bool) {
	c := e.crowd
	for left := slice; len(c.reviews) > 0; {
		r := c.reviews[0]
		for ; r.next != nil && left > 0; left-- {
			w := r.next
			r.next = w.next
			if r.list != nil && w.in(r.list.account) == nil {
				continue
			}
			if w.ends() < r.until {
				left -= look
				if e.doom(now, w) {
					refused = true
					continue
				}
			}
			r.first = min(r.first, w.ends())
		}
		switch {
		case r.next != nil:
			e.later(c)
			return refused
		case r.again:
			r.again, r.next, r.first = false, r.group.waiters, meter.Never
			continue
		case r.list != nil:
			r.list.first = min(r.list.first, r.first)
		}
		c.reviews = slices.Delete(c.reviews, 0, 1)
	}
	return refused
}

// later sees to it that work goes on once the lock was given up.
func (e *Domain) later(c *crowd) {
	if !c.working {
		c.working = true
		time.AfterFunc(0, e.resume)
	}
}

// resume goes on with work.
func (e *Domain) resume() {
	e = e.Lock()
	defer e.Unlock()
	if e.crowd == nil {
		return // nobody waits any more
	}
	now := e.Now()
	e.crowd.working = false
	e.work(now)
	e.Run(now)
}

// doom refuses w if it certainly cannot be granted in time.
func (e *Domain) doom(now meter.Instant, w *Waiter) bool {
	if e.renew(now, w); len(w.places) == 0 && e.try(now, w) {
		return false
	}
	t, a := certain(now, &w.Request, w.Needs, false)
	if t <= w.ends() {
		return false
	}
	e.refuse(now, w, w.late(now, a, t))
	return true
}

// ends is when w's wait ends without a grant.
func (w *Waiter) ends() meter.Instant { return min(w.expires, w.deadline) }

// sweep is Recheck for those that wait for an account that is short for w, the
// head, for long. It reports whether somebody was refused.
func (e *Domain) sweep(now meter.Instant, l *waitlist, w *Waiter) (refused bool) {
	t, _ := certain(now, &w.Request, w.Needs, false)
	if t < now.Add(bulk) || t <= l.first {
		return false
	}
	l.first = meter.Never // of those that come; the review adds the others
	if g := l.account.Group; g != nil {
		return e.review(now, g, l, meter.Never)
	}
	var all []*Waiter
	for _, c := range l.high.a {
		for _, k := range c.all.a {
			all = append(all, k.waiter)
		}
	}
	for _, w := range all {
		if e.doom(now, w) {
			refused = true
		} else {
			l.first = min(l.first, w.ends())
		}
	}
	return refused
}

// retryAll marks the waitlists in which those of g stand: all of the domain, if
// these are fewer than those who wait.
func (e *Domain) retryAll(g *Group) {
	if e.crowd == nil || int(g.Waiting) <= len(e.crowd.lists) {
		g.Each(e.retry)
		return
	}
	for _, l := range e.crowd.lists {
		e.Mark(l.account)
	}
}

// enroll notes a waitlist that begins, and strike one that ends.
func (c *crowd) enroll(l *waitlist) {
	l.at = len(c.lists)
	c.lists = append(c.lists, l)
}

func (c *crowd) strike(l *waitlist) {
	last := len(c.lists) - 1
	c.lists[l.at] = c.lists[last]
	c.lists[l.at].at = l.at
	c.lists[last] = nil
	c.lists = c.lists[:last]
}

// forget takes w, which waits no more, out of the reviews.
func (c *crowd) forget(w *Waiter) {
	for _, r := range c.reviews {
		if r.next == w {
			r.next = w.next
		}
	}
}
