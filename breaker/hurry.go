package breaker

import "time"

// A caller's deadline says how long the caller waits, not how long the host
// takes. If answers take 3 s, each caller who waits for 2 s meets with silence,
// and must not close the host to those who wait longer. So while the host
// answers, a deadline that is shorter than its slowest answers is no failure.
//
// At first nobody knows how long answers take: deadlines may open the circuit
// before the first answer comes. That answer then closes it.

// hurries is what a circuit knows about callers who do not wait. Its circuit's
// mu guards it.
type hurries struct {
	slowest time.Duration // of the answers of the last two Windows or so
	slowAt  time.Time     // when that one came
	pressed time.Time     // when a caller was last in a hurry
	sure    time.Time     // when something else than a caller's deadline last failed
	hasty   bool          // not closed: only callers' deadlines have opened the circuit
}

// timed notes how long an answer took.
func (c *circuit) timed(took time.Duration, now time.Time) {
	if took >= c.slowest || now.Sub(c.slowAt) > 2*c.cfg.Window {
		c.slowest, c.slowAt = took, now
	}
}

// hurried reports whether an attempt was ended by its caller sooner than the
// host lately answered others. A host that has answered nobody for as long as
// its slowest answer took may be down.
func (c *circuit) hurried(v verdict, now time.Time) bool {
	if !v.hasty {
		return false
	}
	c.pressed = now
	c.calm.Store(false)
	return now.Sub(v.left) < c.slowest && now.Sub(c.spoke) <= c.slowest && now.Sub(c.slowAt) <= 2*c.cfg.Window
}

// refutes reports whether v, an answer, shows that the callers whose deadlines
// opened the circuit, or those who suspected the host of silence, did not wait long
// enough.
func (c *circuit) refutes(v verdict) bool {
	return c.state != Closed && v.answered && (c.hasty && v.outcome == Success || c.guessed && v.outcome != Failure)
}
