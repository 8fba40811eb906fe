package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Work for each of many waiters is done in slices. Between two slices the lock is released, so
// that answers and new requests need not wait for all of it. Nobody is granted out of turn
// meanwhile: waiters keep their places, and a waiter whose needs are still to be asked for
// holds up those that rank after it.
const (
	// slice is how many waiters are passed in one slice. That takes a millisecond or two
	// if they are not in the processor's cache.
	slice = 8000

	// look is how much a waiter counts of a slice if its accounts are asked, or if it is
	// refused, instead of 1 for one that is only passed.
	look = 8
)

// A review looks at all that wait in a group, or for an account, and refuses those
// that certainly cannot be granted in time any more. Requests that come later need no review,
// as Queue does the same.
type review struct {
	group *Group        // the group; nil: those in list
	list  *waitlist     // the waitlist, whose first is set to the review's
	until meter.Instant // waiters whose time ends later are only passed
	last  *Waiter       // the last waiter that was passed; nil: none was
	again bool          // it is to be done once more, from the beginning
	first meter.Instant // when the first wait ends of those that stay
}

// next is the waiter to be looked at next, by rank; nil: all were.
func (r *review) next() *Waiter {
	if r.list == nil {
		if r.group.line == nil {
			return nil
		}
		return r.group.line.after(r.last)
	}
	k := r.list.ranks.from(func(k *place) bool { return r.last != nil && !r.last.before(k.waiter) })
	if k == nil {
		return nil
	}
	return k.waiter
}

// Recheck refuses those of g that certainly cannot be granted in time any more, even if nobody
// else waited. It looks only at those whose time ends before until: the caller knows that
// nobody certainly has to wait for longer.
func (e *Domain) Recheck(now meter.Instant, g *Group, until meter.Instant) {
	if g.line != nil {
		e.review(now, review{group: g, until: until})
	}
	e.Run(now)
}

// review begins a review and reports whether it has refused a waiter already. A timer
// continues it. The caller calls Run afterwards.
func (e *Domain) review(now meter.Instant, r review) bool {
	e.crowd.add(r)
	if e.crowd.working {
		return false // a slice was done already
	}
	return e.work(now)
}

// add puts r among the reviews.
func (c *crowd) add(r review) {
	i := slices.IndexFunc(c.reviews, func(o *review) bool { return o.group == r.group && o.list == r.list })
	if i < 0 {
		r.first = meter.Never
		c.reviews = append(c.reviews, &r)
		return
	}
	o := c.reviews[i]
	o.again, o.until = true, max(o.until, r.until)
}

// work does a slice of the work for many waiters, and reports whether it has refused one. If
// some is left, a timer continues.
func (e *Domain) work(now meter.Instant) (refused bool) {
	c := e.crowd
	left := slice
	if len(c.strays) > 0 {
		if left = e.settle(now, left); left <= 0 {
			return false
		}
	}
	if left = c.redrawAll(e, now, left); left > 0 {
		left = c.markAll(e, left)
	}
	if left > 0 {
		left, refused = c.reviewAll(e, now, left)
	}
	if left <= 0 {
		e.later(c)
	}
	return refused
}

// redrawAll does as much of the redraws as is left of the slice, and returns what is left of that
// then; zero or less: they are not done.
func (c *crowd) redrawAll(e *Domain, now meter.Instant, left int) int {
	for len(c.redraws) > 0 {
		g := c.redraws[0]
		if left = e.redraw(now, g, left); left <= 0 {
			return left
		}
		c.redraws = slices.Delete(c.redraws, 0, 1)
		if g.line != nil {
			g.line.redraws = false
			e.mark(g) // they may have held up others
			c.add(review{group: g, until: meter.Never})
		}
	}
	return left
}

// markAll is redrawAll for marks.
func (c *crowd) markAll(e *Domain, left int) int {
	for len(c.marks) > 0 {
		m := c.marks[0]
		if left = m.do(e, left); left <= 0 {
			return left
		}
		if m.again {
			m.again, m.last = false, nil
			continue
		}
		c.marks = slices.Delete(c.marks, 0, 1)
	}
	return left
}

// reviewAll is redrawAll for reviews. It reports whether one that waits was refused.
func (c *crowd) reviewAll(e *Domain, now meter.Instant, left int) (_ int, refused bool) {
	for len(c.reviews) > 0 {
		r := c.reviews[0]
		if r.do(e, now, &left, &refused); left <= 0 {
			return left, refused
		}
		if r.again {
			r.again, r.last, r.first = false, nil, meter.Never
			continue
		}
		if r.list != nil {
			r.list.first = min(r.list.first, r.first)
		}
		c.reviews = slices.Delete(c.reviews, 0, 1)
	}
	return left, refused
}

// do does as much of r as is left of the slice.
func (r *review) do(e *Domain, now meter.Instant, left *int, refused *bool) {
	for ; *left > 0; *left-- {
		w := r.next()
		if w == nil {
			return
		}
		r.last = w
		if w.ends() < r.until {
			*left -= look
			if e.doom(now, w) {
				*refused = true
				continue
			}
		}
		r.first = min(r.first, w.ends())
	}
}

// later starts a timer that continues the work once the lock is released.
func (e *Domain) later(c *crowd) {
	if !c.working {
		c.working = true
		time.AfterFunc(0, e.resume)
	}
}

// resume is called by the timer of later.
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

// doom refuses w if it certainly cannot be granted in time, and reports whether it did.
func (e *Domain) doom(now meter.Instant, w *Waiter) bool {
	if e.renew(now, w); len(w.places) == 0 && e.try(now, w) {
		return false
	}
	t, a := certain(now, w.Request, w.Needs, false)
	if t <= w.ends() {
		return false
	}
	e.refuse(now, w, w.late(now, a, t))
	return true
}

// ends is when w's wait ends without a grant.
func (w *Waiter) ends() meter.Instant { return min(w.expires, w.deadline) }

// sweep is Recheck for those in l, if its head w certainly has to wait for long. It reports
// whether a waiter was refused.
func (e *Domain) sweep(now meter.Instant, l *waitlist, w *Waiter) (refused bool) {
	t, _ := certain(now, w.Request, w.Needs, false)
	if t < now.Add(bulk) || t <= l.first {
		return false
	}
	l.first = meter.Never // waiters that come later lower it, and so does the review for the others
	return e.review(now, review{list: l, until: meter.Never})
}

// A marking marks all waitlists in which waiters of a group have places.
type marking struct {
	group *Group
	last  *Waiter // the last waiter whose waitlists were marked; nil: none yet
	again bool    // it is to be done once more, from the beginning
}

// retryAll marks all waitlists in which waiters of g have places. If these are very many, a
// timer continues. The caller calls Run afterwards.
func (e *Domain) retryAll(now meter.Instant, g *Group) {
	if g.line == nil {
		return
	}
	if e.mark(g); len(e.crowd.marks) > 0 && !e.crowd.working {
		e.work(now)
	}
}

// mark is retryAll, but leaves the marking of many to work. If the domain has fewer waitlists
// than g has waiters, all waitlists are marked at once.
func (e *Domain) mark(g *Group) {
	c := e.crowd
	if len(c.lists) <= min(int(g.Waiting), slice) {
		for _, l := range c.lists {
			e.Mark(l.account)
		}
		return
	}
	if i := slices.IndexFunc(c.marks, func(m *marking) bool { return m.group == g }); i >= 0 {
		c.marks[i].again = true
		return
	}
	c.marks = append(c.marks, &marking{group: g})
}

// do does as much of m as left allows, and returns how much of left remains.
func (m *marking) do(e *Domain, left int) int {
	for ; m.group.line != nil && left > 0; left -= look { // a waitlist each, far apart in memory
		w := m.group.line.after(m.last)
		if w == nil {
			break
		}
		m.last = w
		e.retry(w)
	}
	return left
}

// enroll adds a waitlist to those of the domain.
func (c *crowd) enroll(l *waitlist) {
	l.at = len(c.lists)
	c.lists = append(c.lists, l)
}

// strike removes a waitlist in which nobody waits any more.
func (c *crowd) strike(l *waitlist) {
	last := len(c.lists) - 1
	c.lists[l.at] = c.lists[last]
	c.lists[l.at].at = l.at
	c.lists[last] = nil
	c.lists = c.lists[:last]
}
