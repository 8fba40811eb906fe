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
	Paused                   // likewise as late, for a pause
)

// A Refusal says why a request may not go, or not wait. It holds for the moment
// at which it was made.
type Refusal struct {
	Reason   Reason
	Account  *Account      // that bound; nil: none
	Wait     time.Duration // until that may grant it; zero: nobody knows
	Why      string        // in words, if those are not the account's label
	Deadline bool          // the wait would pass the context's deadline
	Bound    time.Duration // the time it might have waited
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

// binding is the account w waits for longest.
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

// refusal is that of a wait until t for a, which is later than end. If a pause
// alone would be, that is why. What is only guessed of a pause is a reason when
// end has come.
func (q *Request) refusal(now, t meter.Instant, a *Account, end meter.Instant, needs []Need) *Refusal {
	rests := func(o *Account) meter.Instant {
		if end > now {
			return o.sure()
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
	}
	return r
}

// rests is an account that rests, or a if there is none: the one that holds up
// most requests, but a gate only if no other does.
func (q *Request) rests(a *Account, needs []Need, rests func(*Account) bool) *Account {
	for _, g := range [...]*Group{q.Group, q.Host} {
		if g != nil && rests(&g.Gate) {
			a = &g.Gate
		}
	}
	for i := len(needs) - 1; i >= 0; i-- { // what many share is drawn first
		if o := needs[i].Account; o.Label != q.Group.Gate.Label && o != q.Alone && rests(o) {
			a = o
		}
	}
	return a
}
