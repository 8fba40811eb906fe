package breaker

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// errMoved sends a waiter to the circuit that took its circuit's place, or
// back to find out that an operator has decided.
var errMoved = errors.New("breaker: ask again")

// errYield sends a request at the Meter back to a throttle that wants to wait
// itself.
var errYield = errors.New("breaker: wait elsewhere")

// yield is errYield as the throttle sees it.
type yield struct{ circuits *Circuits }

func (*yield) Error() string         { return errYield.Error() }
func (*yield) RefusedBy() notsent.By { return notsent.Meter }

// Wait implements trip.Yield: r stands in line as it would at the Door.
func (y *yield) Wait(r *http.Request, t *trip.Trip) (done func(), err error) {
	e, own := y.circuits.hold(t, r)
	if own {
		defer e.Release()
	}
	p, err := y.circuits.admit(e, trip.Door, t, r)
	if err != nil {
		return nil, err
	}
	return func() {
		if p.candidate != 0 {
			p.circuit.abandon(p)
		}
	}, nil
}

// ask is a request at the Door or the Meter.
type ask struct {
	by   trip.Layer
	trip *trip.Trip
	r    *http.Request
}

// admit is try for a request that may wait. It returns a refusal, or errMoved.
func (c *circuit) admit(a *ask) (pass, error) {
	told := false
	c.mu.Lock()
	now := time.Now()
	if c.retired {
		c.mu.Unlock()
		return pass{}, errMoved
	}
	if p, ok := c.try(a, now); ok {
		defer c.unlessTold(&told, func() { c.lose(p) })
		c.unlock()
		told = true
		return p, nil
	}
	w, err := c.join(a, now)
	if err != nil {
		c.unlock()
		return pass{}, err
	}
	defer c.unlessTold(&told, func() { c.forsake(w) })
	c.unlock()
	p, err := c.await(a, w)
	told = true
	return p, err
}

// unlessTold undoes what a request got if the hook, told on its way, panics
// or ends its goroutine.
func (c *circuit) unlessTold(told *bool, undo func()) {
	if !*told {
		c.mu.Lock()
		defer c.mu.Unlock()
		undo()
		c.dispatch(time.Now())
	}
}

// forsake takes w out of the line, or gives back what it got there.
func (c *circuit) forsake(w *waiter) {
	if !w.done {
		c.line.settle(w, pass{}, nil)
	}
	c.lose(w.pass)
}

// join puts the request in line if there is a chance that it can go in time.
func (c *circuit) join(a *ask, now time.Time) (*waiter, error) {
	if !a.trip.Hedge && a.trip.Held().IsZero() {
		c.spare(now)
	}
	most := c.patience(a, now)
	hopes := most <= 0
	if hopes {
		most = c.hope(a, now)
	}
	if most <= 0 || a.trip.Hedge || c.line.len() >= maxWaiting {
		c.refused++
		return nil, c.refusal(refuser(a.by), now, nil, nil)
	}
	until, late := c.until(a, now, most)
	if !now.Before(until) || until.Before(c.earliest) && !hopes {
		c.refused++
		return nil, c.refusal(refuser(a.by), now, late, late)
	}
	if !c.sounded && c.outlasts(a, now) {
		c.sounded = true
		c.refund()
	}
	if c.candidate.id != 0 && c.candidate.who == a.trip.Request { // overtaken on its way to the wire
		c.candidate = slot{}
	}
	if a.by == trip.Meter && a.trip.Yields {
		return nil, errYield
	}
	w := &waiter{by: a.by, trip: a.trip, r: a.r, since: now, until: until, late: late, hopes: hopes, settled: make(chan struct{})}
	w.chance = lastChance(now, until)
	c.line.add(w)
	c.dispatch(now)
	return w, nil
}

// until is when a request that may wait for most stops waiting, and the reason if
// that is its deadline. It stops a moment before the deadline: http.Client would replace
// an error of the deadline's own instant by a text.
func (c *circuit) until(a *ask, now time.Time, most time.Duration) (time.Time, error) {
	if a.trip.Held().IsZero() {
		a.trip.Hold(now)
	}
	until := now.Add(most)
	if c.cfg.Patience > 0 {
		until = a.trip.Held().Add(c.cfg.Patience)
	}
	if d, ok := a.r.Context().Deadline(); ok {
		if d = d.Add(-min(50*time.Millisecond, d.Sub(now)/20)); d.Before(until) {
			return d, context.DeadlineExceeded
		}
	}
	return until, nil
}

// lastChance leaves a tenth of the wait, at most 1 s, for an answer.
func lastChance(now, until time.Time) time.Time {
	return until.Add(-min(time.Second, until.Sub(now)/10))
}

// await waits until w is settled, the request's context ends or its time is
// up.
func (c *circuit) await(a *ask, w *waiter) (pass, error) {
	timer := time.NewTimer(time.Until(w.chance))
	defer timer.Stop()
	ctx := a.r.Context()
	for waiting := true; waiting; {
		select {
		case <-w.settled:
			if ctx.Err() == nil {
				c.mu.Lock()
				c.unlock() // the timer leaves it to us to tell the hook
				return w.pass, w.err
			}
			waiting = false
		case <-timer.C:
			again := c.hurry(w)
			timer.Reset(again)
			waiting = again > 0
		case <-ctx.Done():
			waiting = false
		case <-cancelled(a.r): // http.Client's timeout closes it too
			if ctx.Err() == nil {
				return c.quit(a, w, true, context.Canceled, context.Canceled)
			}
			waiting = false
		}
	}
	if err := ctx.Err(); err != nil {
		return c.quit(a, w, true, context.Cause(ctx), err)
	}
	return c.quit(a, w, false, w.late, w.late)
}

// hurry lets one whose time runs out go now, if the circuit is closed and the
// line is being released, or if it may go as a probe. It returns how long to
// wait before asking again; 0: its time is up.
func (c *circuit) hurry(w *waiter) time.Duration {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	switch {
	case w.done:
	case c.state == Closed && !c.line.inTurn && !now.Before(w.last()):
		c.line.settle(w, c.pass(), nil)
	case !now.Before(w.until):
		if !c.guessed || w.late != nil {
			return 0
		}
		c.line.settle(w, c.pass(), nil) // nobody is refused on suspicion
	case c.state != Closed && c.cfg.Patience > 0 && !now.Before(c.earliest) && !c.probe.taken(now, c.probeLease()):
		if w.by == trip.Meter {
			if p, ok := c.begin(w.trip, now); ok {
				c.line.settle(w, p, nil)
			}
		} else if !c.candidate.taken(now, candidateLease) {
			c.notBefore, c.latest = now, now
			c.line.settle(w, c.nominate(w.trip, now), nil)
		}
	}
	c.dispatch(now)
	if w.done {
		return c.cfg.OpenFor // settled says so first
	}
	next := w.until
	if at := now.Add(c.cfg.OpenFor); at.Before(next) {
		next = at
	}
	if c.earliest.After(now) && c.earliest.Before(next) {
		next = c.earliest
	}
	return next.Sub(now)
}

// quit takes a request that no longer waits out of the line, unless it was
// settled meanwhile. gone says that its caller no longer wants it.
func (c *circuit) quit(a *ask, w *waiter, gone bool, cause, ctx error) (pass, error) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	switch {
	case w.done && !gone:
		return w.pass, w.err
	case w.done:
		c.lose(w.pass)
	default:
		c.line.settle(w, pass{}, nil)
	}
	c.dispatch(now)
	c.refused++
	return pass{}, c.refusal(refuser(a.by), now, cause, ctx)
}

// outlook is how long a request of this host, coming to the wire now, would
// wait, and its refusal if it would be refused.
func (c *circuit) outlook(a *ask) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.state == Closed || c.retired {
		return c.doubt(a, now), nil
	}
	if !c.bound(a.r) {
		return 0, nil
	}
	wait := max(0, c.notBefore.Sub(now))
	if c.cfg.RetriesOnly || a.trip.Hedge {
		return wait, c.refusal(notsent.Meter, now, nil, nil)
	}
	most := c.patience(a, now)
	if most <= 0 {
		if c.due(now) {
			return 0, nil
		}
		return wait, c.refusal(notsent.Meter, now, nil, nil)
	}
	until, late := c.until(a, now, most)
	if c.state == HalfOpen && a.trip.Probe { // which failed: others first
		wait = max(wait, c.cfg.OpenFor)
	}
	if chance := lastChance(now, until); chance.Before(now.Add(wait)) {
		wait = max(0, c.earliest.Sub(now), chance.Sub(now))
	}
	if !now.Before(until) || until.Before(c.earliest) {
		return wait, c.refusal(notsent.Meter, now, late, late)
	}
	a.trip.Patience = trip.Patient
	return wait, nil
}

// doubt is how long a request that has failed waits for a circuit that may be
// about to open: its attempts must not be used up before that. What it costs
// the host ends with the circuit's opening or the next good answer. From
// Consecutive failures on its next attempt costs nothing. As few as two make it
// wait, if that is much for this host: others will know.
func (c *circuit) doubt(a *ask, now time.Time) time.Duration {
	n := c.cfg.Consecutive
	likely := n > 0 && c.failed >= n
	if !c.cfg.classic {
		n = min(n, max(2, c.chance.run/3))
	}
	if n <= 0 || c.failed < n || c.cfg.Patience <= 0 || a.trip.Hedge {
		return 0
	}
	if until, _ := c.until(a, now, c.patience(a, now)); !now.Add(c.cfg.OpenFor).Before(until) {
		return 0
	}
	if a.trip.Patience = trip.Doubtful; likely {
		a.trip.Patience = trip.Patient
	}
	return c.cfg.OpenFor
}
