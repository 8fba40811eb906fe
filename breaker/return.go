package breaker

import "time"

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
)

// absences is what a circuit knows of when its host was away. Its circuit's mu
// guards it.
type absences struct {
	lasted   time.Duration // the last that is over; zero: none was
	returned time.Time     // when that ended
	mute     bool          // this one is one of silence
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
// closed.
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
