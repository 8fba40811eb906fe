package throttle

import "github.com/weirhttp/weir/throttle/internal/meter"

// draw is one account's part in a request.
type draw struct {
	a    *account
	n    int64 // units; an account with none of them is not waited for
	mark meter.Token
}

// account is one limit: a meter, a pause and a line of those that wait.
type account struct {
	meter  meter.Meter
	terms  *terms
	scope  *scope // nil: a pool
	line   *line  // nil: nobody waits
	paused instant
	sure   instant // until when the pause is certain, not guessed
	why    string  // of the pause, in words
}

// terms says what an account counts and for whom. It may be shared and does not
// change.
type terms struct {
	unit      string // "": one for each request, whatever it costs
	text      string // the limit in words: "100000/h"
	toHeaders bool   // unit "": the place is given back when headers come
	spec      *meter.Rate
	pattern   string // the budget it stands in; "": Default
	route     string // the pattern, if it names more than a host
}

// at is the earliest instant at which n units may be granted, as meter.at.
func (a *account) at(now instant, n int64) instant {
	t := a.meter.At(now, n)
	if a.paused > now {
		return max(t, a.paused)
	}
	return t
}

// enter grants draws at once if there is room and nobody is to go first; then
// it charges them. That is the fast path: it does not allocate.
func (e *engine) enter(now instant, draws []draw, q *ask) bool {
	if q.shut(now) != nil || !room(now, draws) {
		return false
	}
	if q.upTo > 1 {
		stretch(now, draws, q.upTo)
	}
	charge(now, draws, q.held())
	return true
}

// room reports whether there is room for draws and nobody is to go first.
func room(now instant, draws []draw) bool {
	for i := range draws {
		d := &draws[i]
		if d.n == 0 {
			continue
		}
		if !d.a.clear(now) || d.a.meter.At(now, d.n) > now {
			return false
		}
	}
	return true
}

// clear reports that nobody waits for a, nor is it paused.
func (a *account) clear(now instant) bool { return a.line == nil && a.paused <= now }

// charge takes the units of draws whatever there is.
func charge(now instant, draws []draw, held bool) {
	for i := range draws {
		if d := &draws[i]; d.n != 0 {
			d.mark = d.a.meter.Take(now, d.n, held)
		}
	}
}

// fits returns the first draw that can never be granted, or nil.
func fits(now instant, draws []draw) *draw {
	for i := range draws {
		if d := &draws[i]; d.n != 0 && d.n > d.a.meter.State(now).Most {
			return d
		}
	}
	return nil
}
