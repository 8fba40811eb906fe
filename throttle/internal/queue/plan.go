package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Mark notes that Run has to plan a's waitlist, because a has changed.
func (e *Domain) Mark(a *Account) {
	if l := a.waitlist; l != nil && !l.dirty {
		l.dirty = true
		e.crowd.dirty = append(e.crowd.dirty, l)
	}
}

// Run plans the waitlists that were marked: it grants all requests that may go, and sets the
// timers for the others. If very many may go, a timer continues once the lock is released.
func (e *Domain) Run(now meter.Instant) {
	for left := slice / look; e.crowd != nil && len(e.crowd.dirty) > 0; {
		c := e.crowd
		if left <= 0 {
			e.later(c)
			return
		}
		last := len(c.dirty) - 1
		l := c.dirty[last]
		c.dirty = c.dirty[:last]
		l.dirty = false
		left--
		if l.len() > 0 {
			left -= e.plan(now, l, left)
		}
	}
}

// again is after what time a meter is asked again that had no room and then had some at the
// same instant. That happens if its answers change what it knows. It is short, so that no
// request waits for long, but a meter that goes on like that does not keep a processor busy.
const again = time.Millisecond

// plan grants the heads of l one after the other, as long as there is room. It looks at most at
// most waiters, and returns at how many it has looked.
func (e *Domain) plan(now meter.Instant, l *waitlist, most int) (n int) {
	for ; l.len() > 0; n++ {
		if n > most {
			e.Mark(l.account)
			return n
		}
		w := l.head()
		if w.held() {
			return n // the Redraw that holds it marks l later
		}
		if e.try(now, w) {
			continue
		}
		if k := w.in(l.account); k == nil || k.list != l { // it left l; if l was empty then, it may stand in a new one
			continue
		}
		if w.yields(now, l) {
			e.unclaim(w.in(l.account), false)
			continue
		}
		if o := l.oldest(); o != w && o.before(w) && w.stuck() && e.try(now, o) {
			continue
		}
		break
	}
	if l.len() > 0 {
		e.await(now, l)
	}
	return n
}

// await sets the timer of l, in which somebody waits, to when there may be room.
func (e *Domain) await(now meter.Instant, l *waitlist) {
	w := l.head()
	t := w.opens(now, l)
	if t > now && e.sweep(now, l, w) {
		e.Mark(l.account)
		return
	}
	if o := l.oldest(); o != w && w.stuck() {
		if u := o.opens(now, l); u > now && (u < t || t <= now) {
			t = u
		}
	}
	if t <= now && !w.stuck() { // when it was tried, a meter said otherwise
		t = now.Add(again)
	}
	e.arm(now, l, t)
}

// arm sets the timer of l to t. If t is past or Never there is none: another waitlist or an
// event must move first.
func (e *Domain) arm(now meter.Instant, l *waitlist, t meter.Instant) {
	if t <= now || t == meter.Never {
		if l.timer != nil && l.wake != meter.Never {
			l.timer.Stop()
			l.wake = meter.Never
		}
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(t.Until(now), func() { e.ring(l) })
	} else if l.wake != t {
		l.timer.Reset(t.Until(now))
	}
	l.wake = t
}

// ring is called by the timer of l.
func (e *Domain) ring(l *waitlist) {
	e = e.Lock()
	defer e.Unlock()
	now := e.Now()
	l.wake = meter.Never
	e.Mark(l.account)
	e.Run(now)
}

// try grants w if there is room for all its needs and it is its turn in all its waitlists. If
// not, w joins the waitlists of the accounts of which it is short.
func (e *Domain) try(now meter.Instant, w *Waiter) bool {
	if w.held() {
		return false
	}
	e.renew(now, w)
	if !e.stand(now, w) || !w.first() {
		return false
	}
	if w.UpTo > 1 {
		stretch(now, w.Needs, w.UpTo)
	}
	e.grant(now, w)
	return true
}

// grant ends w's wait and charges its needs.
func (e *Domain) grant(now meter.Instant, w *Waiter) {
	w.granted = true
	e.leave(w)
	w.Needs = w.Needs[:len(w.Needs)-w.gateCount()] // gates are needed for the wait alone
	Charge(now, w.Needs, w.Held)
	w.done(now)
}

// first reports whether it is w's turn in all its waitlists.
func (w *Waiter) first() bool {
	for _, c := range w.places {
		p := c.list.head()
		if p != w && !(w.before(p) && p.stuck()) {
			return false
		}
	}
	return true
}

// stand puts w into the waitlists of the accounts of which it is short, and reports whether it
// is short of none. In that case it also puts w into the other waitlists of its accounts. While
// w is short it has no place in these, because it would keep others from units that it cannot
// take yet. While it is short of Request.Alone, it has a place only there.
func (e *Domain) stand(now meter.Instant, w *Waiter) bool {
	if o := w.Alone; o != nil && o.At(now, 1) > now {
		e.apart(w, o)
		return false
	}
	ok := true
	for i := range w.Needs {
		if d := &w.Needs[i]; d.N != 0 && d.Account.At(now, d.N) > now {
			if ok = false; w.in(d.Account) == nil {
				e.join(w, d)
			}
		}
	}
	for i := 0; ok && i < len(w.Needs); i++ {
		if d := &w.Needs[i]; d.N != 0 && d.Account.waitlist != nil && w.in(d.Account) == nil {
			e.join(w, d)
		}
	}
	return ok
}

// apart takes w out of all waitlists but that of o, whose timer decides when w is tried again.
func (e *Domain) apart(w *Waiter, o *Account) {
	for i := len(w.places) - 1; i >= 0; i-- {
		if k := w.places[i]; k.list.account != o {
			e.unclaim(k, false)
			e.Mark(o)
		}
	}
	if w.in(o) == nil {
		e.join(w, &Need{Account: o, N: 1})
	}
}

// join puts w into the waitlist of d's account.
func (e *Domain) join(w *Waiter, d *Need) {
	a := d.Account
	if a.waitlist == nil {
		a.waitlist = &waitlist{account: a, wake: meter.Never}
		e.gather().enroll(a.waitlist)
	}
	l := a.waitlist
	var was *Waiter
	if l.len() > 0 {
		was = l.head()
	}
	l.add(w, d.N)
	if was != nil && was != w && l.head() != was {
		for _, c := range was.places { // it is not the head any more, so others may pass it elsewhere
			e.Mark(c.list.account)
		}
	}
	e.Mark(a)
}

// leave takes w out of all its waitlists.
func (e *Domain) leave(w *Waiter) {
	for len(w.places) > 0 {
		e.unclaim(w.places[len(w.places)-1], w.granted)
	}
	e.unlist(w)
}

// unclaim takes a waiter out of one waitlist.
func (e *Domain) unclaim(k *place, granted bool) {
	l := k.list
	l.remove(k, granted)
	w := k.waiter
	i, last := slices.Index(w.places, k), len(w.places)-1
	w.places[i] = w.places[last]
	w.places[last] = nil
	w.places = w.places[:last]
	*k = place{} // w may take another there
	if l.len() > 0 {
		e.Mark(l.account)
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.account.waitlist = nil
	e.crowd.strike(l)
}
