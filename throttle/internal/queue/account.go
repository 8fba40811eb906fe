package queue

import "github.com/weirhttp/weir/throttle/internal/meter"

// A Need is units of one account that a request draws.
type Need struct {
	Account *Account
	N       int64       // units; if zero, the account is not waited for
	Token   meter.Token // what Take returned when they were charged
}

// Of returns the need among needs that draws on a; nil: none does.
func Of(needs []Need, a *Account) *Need {
	for i := range needs {
		if needs[i].Account == a {
			return &needs[i]
		}
	}
	return nil
}

// An Account is one limit: a meter, a pause, and those that wait. The maker of an account
// sets Meter, Label and Group; Pause and Rest set Paused.
type Account struct {
	Meter    meter.Meter
	Label    *Label
	Group    *Group        // the only group whose requests draw on it; nil: several do
	waitlist *waitlist     // nil: nobody waits
	Paused   meter.Instant // nothing is granted before; zero or past: it is not paused
	pause    *pause        // the last one; nil: there was none
}

// pause is the part of an account that few need.
type pause struct {
	sure meter.Instant // until when it is certain, not guessed
	why  string        // in words
}

// Why is the reason of the last pause, in words.
func (a *Account) Why() string {
	if a.pause == nil {
		return ""
	}
	return a.pause.why
}

// Sure is until when the last pause is certain.
func (a *Account) Sure() meter.Instant {
	if a.pause == nil {
		return 0
	}
	return a.pause.sure
}

// A Label says what an account counts and for whom. It may be shared and does not
// change.
type Label struct {
	Unit      string      // "": one for each request, whatever it costs
	Usual     int64       // units of a request whose cost in Unit is not said; 0: as if that were nothing
	Text      string      // the limit in words: "100000/h"
	ToHeaders bool        // if Unit is "": the place is given back when the headers come, not at the end of the body
	Says      bool        // refusals give the meter's own words instead of Text
	Rate      *meter.Rate // of a configured rate, whose units stay spent if no answer comes; nil: it is no such rate
	Pattern   string      // the pattern of the budget that it is part of; "": Default
	Route     string      // that pattern, if it names more than a host
}

// At is the earliest instant at which n units may be granted, as Meter.At.
func (a *Account) At(now meter.Instant, n int64) meter.Instant {
	t := a.Meter.At(now, n)
	if a.Paused > now {
		return max(t, a.Paused)
	}
	return t
}

// Enter charges needs and returns true, if there is room and no other request has to go
// first; otherwise it changes nothing. It does not allocate.
func (e *Domain) Enter(now meter.Instant, needs []Need, q *Request) bool {
	if q.Shut(now) != nil || !Room(now, needs) {
		return false
	}
	if q.UpTo > 1 {
		stretch(now, needs, q.UpTo)
	}
	Charge(now, needs, q.Held)
	return true
}

// Room reports whether there is room for needs, and none of their accounts is paused or has
// requests that wait.
func Room(now meter.Instant, needs []Need) bool {
	for i := range needs {
		d := &needs[i]
		if d.N == 0 {
			continue
		}
		if !d.Account.Clear(now) || d.Account.Meter.At(now, d.N) > now {
			return false
		}
	}
	return true
}

// Draw is Charge if there is Room, and reports whether there is. For the one configured rate that
// most hosts have, it takes two thirds of the time of both.
func Draw(now meter.Instant, needs []Need, held bool) bool {
	if len(needs) == 1 && needs[0].N != 0 {
		d := &needs[0]
		if m, ok := d.Account.Meter.(*meter.Rated); ok && m.Plain() {
			if !d.Account.Clear(now) {
				return false
			}
			d.Token, ok = m.TakeNow(now, d.N, held)
			return ok
		}
	}
	if !Room(now, needs) {
		return false
	}
	Charge(now, needs, held)
	return true
}

// Clear reports that nobody waits for a and it is not paused.
func (a *Account) Clear(now meter.Instant) bool { return a.waitlist == nil && a.Paused <= now }

// Charge takes the units of needs, whether there is room or not.
func Charge(now meter.Instant, needs []Need, held bool) {
	for i := range needs {
		if d := &needs[i]; d.N != 0 {
			d.Token = d.Account.Meter.Take(now, d.N, held)
		}
	}
}

// NeverFits returns an account that can never grant its need; nil: there is none.
func NeverFits(now meter.Instant, needs []Need) *Account {
	for i := range needs {
		if d := &needs[i]; d.N != 0 && d.N > d.Account.Meter.State(now).Most {
			return d.Account
		}
	}
	return nil
}

// Idle reports whether nothing would be lost if a were dropped.
func (a *Account) Idle(now meter.Instant) bool {
	return a.waitlist == nil && a.Paused <= now && a.Meter.State(now).Idle
}

// Waited reports whether somebody waits for a.
func (a *Account) Waited() bool { return a.waitlist != nil }

// Queued is how many wait for a.
func (a *Account) Queued() int {
	if a.waitlist == nil {
		return 0
	}
	return a.waitlist.len()
}

// Backlog is how many wait for a, or in another waitlist behind the one that is first in that of a:
// these come to wait for a when it goes.
func (a *Account) Backlog() int {
	n := a.Queued()
	if n == 0 {
		return 0
	}
	w := a.waitlist.head()
	for _, c := range w.places {
		if c.list.head() == w {
			n = max(n, c.list.len())
		}
	}
	return n
}
