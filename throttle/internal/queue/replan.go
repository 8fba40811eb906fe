package queue

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Redraw asks the owners of those that wait in g anew for their needs, because these may have
// changed. They are asked in the order of their ranks, and none of g goes before it was asked.
func (e *Domain) Redraw(now meter.Instant, g *Group) {
	g.version++
	if g.line == nil {
		return
	}
	if c := e.crowd; !slices.Contains(c.redraws, g) {
		c.redraws = append(c.redraws, g)
	}
	g.line.redraws, g.line.redrawn = true, nil
	if !e.crowd.working {
		e.work(now)
	}
	e.Run(now)
}

// redraw does a slice of g's Redraw and returns how much of it is left over.
func (e *Domain) redraw(now meter.Instant, g *Group, left int) int {
	for ; g.line != nil && left > 0; left -= look {
		w := g.line.after(g.line.redrawn)
		if w == nil {
			break
		}
		g.line.redrawn = w
		e.renew(now, w)
		if a := NeverFits(now, w.Needs); a != nil {
			e.refuse(now, w, &Refusal{Reason: Unfit, Account: a})
		} else if !e.try(now, w) {
			e.retry(w) // by other terms, other times
		}
	}
	return left
}

// Extend notes that those that wait in g draw on more accounts than before, and still on all
// that they wait for. Each owner is asked only when it is the turn of its request, so this
// takes hardly any time for each. The caller knows that no new account certainly makes a
// request wait for longer than until until.
func (e *Domain) Extend(now meter.Instant, g *Group, until meter.Instant) {
	g.version++
	e.Recheck(now, g, until)
}

// renew asks w's owner for its needs, if these may have changed. It takes w out of the
// waitlists of accounts of which it needs another number of units than before.
func (e *Domain) renew(now meter.Instant, w *Waiter) {
	if w.version == w.Group.version {
		return
	}
	w.version = w.Group.version
	e.crowd.count(w, -1)
	w.Needs = w.gates(w.By.Needs(now, w.Needs[:0]))
	e.crowd.count(w, 1)
	for i := len(w.places) - 1; i >= 0; i-- {
		if k := w.places[i]; drawn(w.Needs, k.list.account) != k.units {
			e.unclaim(k, false)
		}
	}
}

// Replan looks again at all that wait in g, because one of their accounts has changed.
func (e *Domain) Replan(now meter.Instant, g *Group) {
	e.retryAll(now, g)
	e.Run(now)
	e.Recheck(now, g, meter.Never)
}

// retry marks all waitlists in which w has a place.
func (e *Domain) retry(w *Waiter) {
	for _, k := range w.places {
		e.Mark(k.list.account)
	}
}

// drawn is how many units needs take from a.
func drawn(needs []Need, a *Account) int64 {
	if d := Of(needs, a); d != nil {
		return d.N
	}
	return 0
}

// Pause pauses a until until; an instant that has passed ends the pause. The pause is certain
// until sure: requests that draw on a and cannot wait that long are refused now. why is the
// reason in words.
func (e *Domain) Pause(now meter.Instant, a *Account, until, sure meter.Instant, why string) {
	a.Rest(until, sure, why)
	e.Mark(a)
	if a.Group != nil {
		e.retryAll(now, a.Group) // those that draw on a may have places in other waitlists only
	}
	e.Run(now)
	if a.Group != nil && sure > now {
		e.Recheck(now, a.Group, meter.Never)
	}
}

// Rest sets the pause of a as Pause does, but does not look at those that wait. why is "" if
// it only ends a pause.
func (a *Account) Rest(until, sure meter.Instant, why string) {
	a.Paused, a.pause = until, nil
	if why != "" {
		a.pause = &pause{sure, why}
	}
}

// Overtake grants q, which may not wait, if there is room now and q ranks before all that wait
// for the same accounts. Then it returns what was charged, and true.
func (e *Domain) Overtake(now meter.Instant, q *Request, needs []Need) ([]Need, bool) {
	if !there(now, needs) {
		return nil, false
	}
	w := e.newcomer(now, q, needs)
	ok := e.try(now, w)
	if !ok {
		e.leave(w)
	}
	e.Run(now)
	return w.Needs, ok
}

// Passes reports whether Overtake would grant q.
func (e *Domain) Passes(now meter.Instant, q *Request, needs []Need) bool {
	if !there(now, needs) {
		return false
	}
	w := e.newcomer(now, q, needs)
	ok := !w.held() && e.stand(now, w) && w.first()
	e.leave(w)
	e.Run(now)
	return ok
}

// there reports whether there is room for needs, whoever waits.
func there(now meter.Instant, needs []Need) bool {
	for i := range needs {
		if d := &needs[i]; d.N != 0 && d.Account.At(now, d.N) > now {
			return false
		}
	}
	return true
}

// newcomer is a waiter for q, in no waitlist yet.
func (e *Domain) newcomer(now meter.Instant, q *Request, needs []Need) *Waiter {
	own := *q // the caller's stays on its stack
	w := newWaiter(&own, needs)
	e.list(now, w)
	return w
}

// Behind is t, when needs may be granted, or if that is now, so that only ranks
// stand against it, when they may be after all those that wait.
func Behind(now, t meter.Instant, needs []Need) meter.Instant {
	if t > now {
		return t
	}
	for i := range needs {
		d := &needs[i]
		if d.N == 0 || d.Account.waitlist == nil {
			continue
		}
		if u := d.Account.Meter.ETA(max(now, d.Account.Paused), d.Account.waitlist.ranks.total(), d.N); u != meter.Never {
			t = max(t, u)
		}
	}
	return t
}

// Estimate is when needs would be granted if they queued now, and the account
// that this is due to, nil if that is now. never: only an event can say.
func Estimate(now meter.Instant, q *Request, needs []Need) (meter.Instant, *Account) {
	t, bound := now, (*Account)(nil)
	if g := q.Shut(now); g != nil && !g.Clear(now) {
		t, bound = max(now, g.Paused), g
	}
	var event *Account
	for i := range needs {
		d := &needs[i]
		if d.N == 0 {
			continue
		}
		var ahead int64
		if l := d.Account.waitlist; l != nil {
			ahead = l.ahead(q)
		}
		switch u := d.Account.Meter.ETA(max(now, d.Account.Paused), ahead, d.N); {
		case u == meter.Never:
			event = d.Account
		case u > t || bound == nil && (u > now || d.Account.waitlist != nil):
			t, bound = max(t, u), d.Account
		case u == t && bound != nil && bound.Paused <= now && d.Account.Paused > now:
			bound = d.Account // says more than a budget that rests as long as it is paused
		}
	}
	if event != nil && t <= now {
		return meter.Never, event
	}
	return t, bound
}
