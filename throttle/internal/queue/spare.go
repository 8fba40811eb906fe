package queue

import "github.com/weirhttp/weir/throttle/internal/meter"

// A Precaution is a meter that may let requests wait although nothing is known against them:
// nobody knows yet what the host bears. That is no reason to lose a request, so one that would
// be refused for it goes.
type Precaution interface {
	// Spares reports whether one more request may go although there is no room.
	Spares(now meter.Instant) bool
}

// spares reports whether a spares one more request.
func (a *Account) spares(now meter.Instant) bool {
	m, ok := a.Meter.(Precaution)
	return ok && a.Paused <= now && m.Spares(now)
}

// spared reports whether q, which has needs, is short only of accounts that spare it.
func (q *Request) spared(now meter.Instant, needs []Need) bool {
	if q.Group.Gate.Paused > now || q.Host != nil && q.Host.Gate.Paused > now || q.Alone != nil && q.Alone.At(now, 1) > now {
		return false
	}
	short := false
	for i := range needs {
		d := &needs[i]
		switch {
		case d.N == 0:
		case d.Account.At(now, d.N) <= now:
			if !d.Account.Clear(now) {
				return false // others go first there
			}
		case !d.Account.spares(now):
			return false
		default:
			short = true
		}
	}
	return short
}

// Spared reports whether q goes now because it has no time to wait, and only precautions would
// make it wait.
func Spared(now meter.Instant, q *Request, needs []Need, p *Patience) bool {
	if p.Spare {
		return false
	}
	if p.Most >= 0 {
		if expires, deadline := p.ends(now); min(expires, deadline) > now {
			return false
		}
	}
	return q.spared(now, needs)
}

// spare grants w, whose time is over, if only precautions let it wait.
func (e *Domain) spare(now meter.Instant, w *Waiter) bool {
	if e.renew(now, w); !w.spared(now, w.Needs) {
		return false
	}
	e.grant(now, w)
	return true
}
