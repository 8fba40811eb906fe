package queue

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Mark notes that a's waitlist must be looked at.
func (e *Domain) Mark(a *Account) {
	if l := a.waitlist; l != nil && !l.dirty {
		l.dirty = true
		e.crowd.dirty = append(e.crowd.dirty, l)
	}
}

// Run grants what can be granted and sets the timers of the waitlists that wait. If
// very many can be, it goes on once the lock was given up.
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

// again is how soon a meter is asked again that had no room and then had some in one
// instant, because its answers changed what it knows: soon enough to cost no time, and not
// so soon that a meter which goes on like that keeps a processor busy.
const again = time.Millisecond

// plan grants from the head of l as long as something fits, looks at so many at
// most, and returns how many it has looked at.
func (e *Domain) plan(now meter.Instant, l *waitlist, most int) (n int) {
	for ; l.len() > 0; n++ {
		if n > most {
			e.Mark(l.account)
			return n
		}
		w := l.head()
		if w.held() {
			return n // what holds it looks at l again
		}
		if e.try(now, w) || w.in(l.account) == nil {
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
	if l.len() == 0 {
		return n
	}
	w := l.head()
	t := w.opens(now, l)
	if t > now && e.sweep(now, l, w) {
		e.Mark(l.account)
		return n
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
	return n
}

// arm sets the timer of l to t; if t is past, another waitlist must move first.
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

// ring is a waitlist's timer.
func (e *Domain) ring(l *waitlist) {
	e = e.Lock()
	defer e.Unlock()
	now := e.Now()
	l.wake = meter.Never
	e.Mark(l.account)
	e.Run(now)
}

// try grants w if all it needs is there and it is its turn everywhere. If not,
// it joins the waitlists of the accounts it is short of.
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
	w.granted = true
	e.leave(w)
	w.Needs = w.Needs[:len(w.Needs)-w.gateCount()] // which counted for the wait alone
	Charge(now, w.Needs, w.Held)
	w.done(now)
	return true
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

// stand puts w into the waitlists of the accounts that it is short of, and reports
// whether it is short of none; then it also stands where others wait. One that is short
// holds no place elsewhere: it would keep others from what it cannot take yet. One that
// waits for itself stands in no other waitlist.
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

// apart leaves w in the waitlist of o alone, which then says when w is looked at
// next.
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
		for _, c := range was.places { // others may pass it elsewhere now
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
	w.places = w.places[:last]
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
