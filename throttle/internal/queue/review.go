package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What has to be done for each of many who wait is done in slices: in between the
// lock is given up, so that an answer or a newcomer need not wait for all of them.
// Nobody is granted out of turn meanwhile: whoever waits stays in its waitlists, and
// who is still to be asked what it draws on now holds up those that rank after it.
const (
	// slice is how many waiters are passed by before the lock is given up: a
	// millisecond or two where they are not in the processor's cache.
	slice = 8000

	// look is as how many of these one counts that is looked at: its accounts are
	// asked, or it is refused.
	look = 8
)

// A review looks at all that wait in a group, or for an account, and refuses those
// whose wait certainly cannot end in time any more. Those that come later need none:
// Queue does the same.
type review struct {
	group *Group        // nil: those in list
	list  *waitlist     // the first of whose ends is to be found
	until meter.Instant // those whose time ends later are passed by
	last  *Waiter       // the last that was looked at; nil: nobody was
	again bool          // once more, from the beginning
	first meter.Instant // of the ends of those that stay
}

// next is the one to be looked at next, by rank; nil: all were.
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

// Recheck refuses those of g whose wait certainly cannot end in time any more,
// even if nobody else waited. It looks only at those whose time ends before the
// given instant: it is known that nobody has to wait for longer.
func (e *Domain) Recheck(now meter.Instant, g *Group, until meter.Instant) {
	if g.line != nil {
		e.review(now, review{group: g, until: until})
	}
	e.Run(now)
}

// review begins a review and reports whether it has refused somebody already.
// What is left of it follows by itself. Run has to follow.
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

// work does a slice of what has to be done for each of many and reports whether it
// has refused somebody. It goes on by itself.
func (e *Domain) work(now meter.Instant) (refused bool) {
	c := e.crowd
	left := slice
	if len(c.strays) > 0 {
		if left = e.settle(now, left); left <= 0 {
			return false
		}
	}
	for len(c.redraws) > 0 {
		g := c.redraws[0]
		if left = e.redraw(now, g, left); left <= 0 {
			e.later(c)
			return false
		}
		c.redraws = slices.Delete(c.redraws, 0, 1)
		if g.line != nil {
			g.line.redraws = false
			e.mark(g) // they may have held up others
			c.add(review{group: g, until: meter.Never})
		}
	}
	for len(c.marks) > 0 {
		m := c.marks[0]
		if left = m.do(e, left); left <= 0 {
			e.later(c)
			return false
		}
		if m.again {
			m.again, m.last = false, nil
			continue
		}
		c.marks = slices.Delete(c.marks, 0, 1)
	}
	for len(c.reviews) > 0 {
		r := c.reviews[0]
		if r.do(e, now, &left, &refused); left <= 0 {
			e.later(c)
			return refused
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
	return refused
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
	t, a := certain(now, w.Request, w.Needs, false)
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
	t, _ := certain(now, w.Request, w.Needs, false)
	if t < now.Add(bulk) || t <= l.first {
		return false
	}
	l.first = meter.Never // of those that come; the review adds the others
	return e.review(now, review{list: l, until: meter.Never})
}

// A marking marks the waitlists in which those of a group stand.
type marking struct {
	group *Group
	last  *Waiter // whose waitlists were marked last; nil: nobody's were
	again bool    // once more, from the beginning
}

// retryAll marks the waitlists in which those of g stand. If they are very many, the
// rest of them follows once the lock was given up. Run has to follow.
func (e *Domain) retryAll(now meter.Instant, g *Group) {
	if g.line == nil {
		return
	}
	if e.mark(g); len(e.crowd.marks) > 0 && !e.crowd.working {
		e.work(now)
	}
}

// mark is retryAll, but leaves it to work to mark many. If the domain has fewer
// waitlists than those of g are, all of them are marked.
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

// do does as much of m as is left of the slice, and returns what is left of that.
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
