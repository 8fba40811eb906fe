package breaker

import (
	"time"

	"github.com/weirhttp/weir/internal/trip"
)

// Some hosts come and go: a backend of one dies and is restarted, again and again.
// While such a host is away, requests of callers without Patience wait for the next
// probes instead of being refused, because the host will soon be back. By refusing
// until a probe has found that out, a hundred calls are lost each time that are
// served otherwise; by more probes the host would pay for it.
//
// A host comes and goes if it was away for a short time before, and the time since
// is not much longer. It is waited for until it has been away twice as long, or
// until the caller's deadline. Hosts that are silent are not waited for: they may be
// overloaded, and those in line would be their next load. Nor are those for whom a
// Fallback answers, or whose user asks for the classic rule.

const (
	// oftenAway is how many times as long as it was away a host may have been well
	// to count as one that comes and goes. The calls that a return costs are one
	// in a hundred of those between two if a host is well for 10 s at 1000 calls
	// a second, so it hardly matters if it is well for longer.
	oftenAway = 10
	// longAway is for how many times the length of the absence before a host is
	// waited for. Most return within twice as long if they do so by a rule.
	longAway = 2
	// shortly is the longest absence that is waited for the next time. Twice as
	// long is what callers without a deadline wait, at most.
	shortly = 10 * time.Second
	// briefly is the least that a probe is given for its answer. A host that is well
	// connects and answers in that time, if it is not known to be slow; those who wait
	// for one that swallows the probe are refused that much later, times Probes.
	briefly = 250 * time.Millisecond
	// lull is for how long nobody must have come before those who come next count as a
	// burst. Whoever is refused where others come all the time is one of a second's
	// calls.
	lull = time.Second
	// together is for how long a burst lasts: what a program starts at once.
	together = 100 * time.Millisecond
)

// absences is what a circuit knows of when its host was away. Its circuit's mu
// guards it.
type absences struct {
	lasted   time.Duration // the last that is over; zero: none was
	returned time.Time     // when that ended
	mute     bool          // this one is one of silence
	burst    time.Time     // when a request last came after a lull, while not closed
}

// away notes that the circuit opens, at its opened.
func (a *absences) away(v verdict) { a.mute = v.silent || v.slow }

// back notes that the circuit which opened at some time has closed.
func (a *absences) back(opened, now time.Time) {
	a.lasted, a.returned = now.Sub(opened), now
	if a.mute || a.lasted > shortly {
		a.lasted = 0
	}
}

// patience is how long a request may wait that comes now and finds the circuit not
// closed, whatever the probes find.
func (c *circuit) patience(a *ask, now time.Time) time.Duration {
	switch {
	case c.guessed, c.outlasts(a, now):
		return max(c.cfg.Patience, c.cfg.Window/2) // an attempt's timeout
	case c.cfg.Patience > 0, c.cfg.RetriesOnly, c.cfg.Fallback != nil, c.cfg.classic, c.mute:
		return c.cfg.Patience
	case c.lasted == 0, c.opened.Sub(c.returned) > oftenAway*c.lasted:
		return 0
	}
	return max(0, longAway*c.lasted-now.Sub(c.opened))
}

// comes notes that a request has come.
func (c *circuit) comes(now time.Time) {
	last := c.changed
	if c.asked.After(last) {
		last = c.asked
	}
	if now.Sub(last) >= lull {
		c.burst = now
	}
	c.asked = now
}

// hope is how long a request may wait that comes in one burst with a probe: until as
// many as close the circuit have had time for their answers, each as much as the
// slowest lately took. When the first one fails it is refused. A probe that had to be
// sent beside another, because that has no answer, gives no hope.
//
// A program that makes many calls at once, once a minute, has no other calls that
// could find out that the host is back. If all but one were refused each time, it
// would lose as many bursts as there are Probes after each outage.
func (c *circuit) hope(a *ask, now time.Time) time.Duration {
	s := c.probe
	if s.id == 0 {
		s = c.candidate
	}
	if s.id == 0 || s.at.Before(c.burst) || now.Sub(c.burst) > together || c.overtaken > 0 || a.by != trip.Door || !c.cfg.lenient() || c.cfg.Fallback != nil {
		return 0
	}
	each := max(briefly, c.slowest)
	if v := vigilOf(a.trip.Host()); v != nil {
		each = max(each, v.slowest())
	}
	return s.at.Add(min(time.Duration(c.cfg.Probes)*each, c.cfg.Window/2)).Sub(now)
}
