package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Reason is why a request is refused.
type Reason uint8

const (
	Late   Reason = iota + 1 // its wait certainly ends too late
	Full                     // too many wait already
	Unfit                    // it can never go
	Paused                   // its wait certainly ends too late because of a pause
)

// A Refusal says why a request may not go, or not wait, at the moment at which it was made.
type Refusal struct {
	Reason   Reason
	Account  *Account      // the account that is the reason; nil: none is
	Wait     time.Duration // until Account may grant the request; zero: not known
	Why      string        // in words; "": the account's label says it
	Deadline bool          // the wait would end after the context's deadline
	Bound    time.Duration // for how long the request could have waited
}

// late is the refusal of a waiter that a can grant at t, which is too late.
func (w *Waiter) late(now meter.Instant, a *Account, t meter.Instant) *Refusal {
	end := w.ends()
	r := w.refusal(now, t, a, end, w.Needs)
	r.Deadline = w.deadline <= w.expires
	r.Bound = end.Until(now)
	return r
}

// tooLong is the refusal of a waiter whose time is up.
func (w *Waiter) tooLong(now meter.Instant) *Refusal {
	a, t := w.binding(now)
	r := w.late(now, a, t)
	r.Bound = w.allowed
	return r
}

// binding is the account for which w has to wait longest, and until when.
func (w *Waiter) binding(now meter.Instant) (*Account, meter.Instant) {
	var a *Account
	t := now
	for _, k := range w.places {
		if u := k.list.account.At(now, k.units); a == nil || u > t {
			a, t = k.list.account, u
		}
	}
	if a == nil {
		a = &w.Group.Gate
	}
	return a, t
}

// refusal refuses a wait for a until t, which is later than end. If a pause alone lasts longer
// than end, that is the reason. A pause that is only guessed is a reason if end has come.
func (q *Request) refusal(now, t meter.Instant, a *Account, end meter.Instant, needs []Need) *Refusal {
	rests := func(o *Account) meter.Instant {
		if end > now {
			return o.Sure()
		}
		return o.Paused
	}
	if a = q.rests(a, needs, func(o *Account) bool { return rests(o) > max(now, end) }); a == nil {
		a = &q.Group.Gate
	}
	r := &Refusal{Reason: Late, Account: a}
	if t = max(t, rests(a)); t != meter.Never {
		r.Wait = t.Until(now)
	}
	switch {
	case rests(a) > now:
		r.Reason, r.Why = Paused, a.Why()
	case a.Label.Says:
		r.Why = a.Reason(now)
	case a.Label == q.Group.Gate.Label: // there is no pause
		r.Account = nil
	}
	return r
}

// rests returns an account for which the function rests returns true, or a if there is none. Of
// several it is the one that most requests draw on, but a gate only if there is no other.
func (q *Request) rests(a *Account, needs []Need, rests func(*Account) bool) *Account {
	for _, g := range [...]*Group{q.Group, q.Host} {
		if g != nil && rests(&g.Gate) {
			a = &g.Gate
		}
	}
	for i := len(needs) - 1; i >= 0; i-- { // accounts that many requests draw on come first
		if o := needs[i].Account; o.Label != q.Group.Gate.Label && o != q.Alone && rests(o) {
			a = o
		}
	}
	return a
}
