package breaker

import (
	"net/http"
	"time"
)

// An attempt that a clock on our side has ended met with silence. That is how a
// dead host looks, and a long poll without news. What tells them apart is
// whether the host lives, of which each answer is a sign:
//
//   - Silence whose second half brought an answer on another route, one that is
//     not silent itself, is its route's own, and no failure of the host. Half,
//     because what is answered at once has not yet been kept waiting when the
//     host dies a moment later.
//   - So is silence of a route that was silent before that answer, too. This
//     holds for the next silences of the route, for a while, until it is
//     answered itself: then it is no longer known as silent by nature.
//   - Silence whose second half brought any answer is no part of a run of
//     failures without an answer.
//   - A circuit that silence alone has opened binds the routes that were
//     silent. Another may ask, and its answer closes the circuit.
//
// Where more than maxSilent routes are silent, that is no property of routes:
// it counts against the host, and binds all.

const (
	// maxSilent is how many silent routes of a host are told apart. A program
	// has a long poll or two to a host; where a host is overloaded, more of
	// its routes than these are silent soon.
	maxSilent = 4
	// trusted is for how many Windows an answer on another route stands for
	// the next silence of a route. Programs that poll send something else
	// every few minutes; if they do not, the route is bound, until they do.
	trusted = 10
)

// silences is what a circuit knows of silence. Its circuit's mu guards it.
type silences struct {
	routes [maxSilent]silent
	many   time.Time // until then more routes are silent than are told apart
	spoke  time.Time // when the host last answered, as far as it was counted
	other  sign      // the newest answer on a route that is not silent
	noise  time.Time // when something else than silence last failed
	run    time.Time // when the first of the failures without an answer ended
	only   bool      // not closed: nothing but the silence of routes is known
	wide   bool      // not closed: too many routes were silent
}

// silent is a route that is, or was lately.
type silent struct {
	route    route
	until    time.Time // remembered at least so long
	since    time.Time // when the first silence ended, or the first since it was answered
	last     time.Time // when the last one did
	answered time.Time // when this route was
	witness  sign      // the host answered on another while this one was silent
}

// find returns what is known of a route, nil if it is not silent.
func (s *silences) find(r route) *silent {
	for i := range s.routes {
		if e := &s.routes[i]; !e.until.IsZero() && e.route == r {
			return e
		}
	}
	return nil
}

// quiet reports whether a route is silent as far as one remembers.
func (s *silences) quiet(r route, now time.Time) bool {
	e := s.find(r)
	return e != nil && now.Before(e.until)
}

// note remembers that a route was silent; nil: too many are. What binds routes
// while the circuit is not closed is not forgotten.
func (s *silences) note(r route, now, until time.Time, closed bool) *silent {
	e := s.find(r)
	if e != nil && closed && !now.Before(e.until) {
		*e = silent{route: r, since: now}
	}
	for i := range s.routes {
		if old := &s.routes[i]; e == nil && (old.until.IsZero() || closed && !now.Before(old.until)) {
			*old = silent{route: r, since: now}
			e = old
		}
	}
	if e != nil {
		e.until, e.last = until, now
	}
	if e == nil || now.Before(s.many) {
		s.many = until
		s.wide = s.wide || !closed
		s.only = s.only && closed
		return nil
	}
	return e
}

// own notes the silence that v met with and reports whether it is its route's
// own.
func (c *circuit) own(v verdict, now time.Time) bool {
	lasted := now.Sub(v.sent)
	e := c.note(v.route, now, now.Add(2*max(c.cfg.Window, 2*lasted)), c.state == Closed)
	if e == nil {
		return false
	}
	if v.heard.route == e.route && v.heard.at.After(e.answered) {
		e.answered = v.heard.at
	}
	if e.answered.After(e.since) {
		e.since = now
	}
	beside := false
	for _, s := range [...]sign{c.other, v.heard} {
		late := !s.at.Before(now.Add(-lasted / 2))
		if (late || s.at.After(e.since)) && !c.quiet(s.route, now) {
			beside = beside || late
			if s.at.After(e.witness.at) {
				e.witness = s
			}
		}
	}
	return beside || e.witness.at.After(e.answered) && now.Sub(e.witness.at) <= trusted*c.cfg.Window && !c.quiet(e.witness.route, now)
}

// interrupted reports whether the host said something to anybody in the second
// half of the silence that v met with.
func (c *circuit) interrupted(v verdict, now time.Time) bool {
	half := now.Add(-now.Sub(v.sent) / 2)
	return v.silent && (!c.spoke.Before(half) || !v.heard.at.Before(half))
}

// hears notes an answer to r.
func (c *circuit) hears(r *http.Request, now time.Time) {
	c.spoke, c.waited = now, 0
	if now.Sub(c.other.at) < tick {
		return
	}
	route := routeOf(r)
	if e := c.find(route); e != nil && now.Before(e.until) {
		e.answered = now
		return
	}
	c.other = sign{now, route}
}

// bound reports whether a circuit that is not closed holds for r.
func (c *circuit) bound(r *http.Request) bool {
	return !c.only || c.find(routeOf(r)) != nil
}

// forget drops routes that a circuit which opens is not to bind: those silent
// long ago, and, if it opens after a run, those answered since their silence.
// Without a run the host is overloaded: there it means nothing to be answered.
func (s *silences) forget(now time.Time, run bool) {
	for i := range s.routes {
		if e := &s.routes[i]; !now.Before(e.until) || run && e.answered.After(e.last) {
			*e = silent{}
		}
	}
}

// noted remembers of a failure whether it was more than silence.
func (c *circuit) noted(v verdict, now time.Time) {
	if !v.silent {
		c.noise = now
	}
}

// silenced reports whether a circuit that v opens is opened by silence alone:
// the run that v ends, the probes, or else what counted in the Window.
func (c *circuit) silenced(v verdict, now time.Time) bool {
	since, run := now.Add(-c.cfg.Window), c.unanswered >= c.cfg.Consecutive && c.cfg.Consecutive > 0
	switch {
	case c.state == HalfOpen:
		since = c.changed
	case run:
		since = c.run
	}
	if c.state == Closed {
		c.wide = now.Before(c.many)
		c.forget(now, run)
	}
	return v.silent && !c.wide && c.noise.Before(since)
}
