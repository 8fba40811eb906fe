package breaker

import "time"

// A caller's deadline says how long the caller waits, not how long the host
// takes. If answers take 3 s, each caller who waits for 2 s meets with silence,
// and must not close the host to those who wait longer. So while the host
// answers, a deadline that is shorter than its slowest answers is no failure.
//
// At first nobody knows how long answers take: deadlines may open the circuit
// before the first answer comes. That answer then closes it. Until then those who
// wait longer than anybody has waited in vain are held and not refused. The first
// of them is sent as a probe, because there may be nobody else whose answer is due.
//
// This ends when the circuit has been open for as long as somebody waited in vain:
// what has been silent for a while is as likely as not to be silent for as long
// again. Those held are a load on the host when it answers. A host that can do 300
// calls a second and is asked for 280, half of them patient, is well within a second
// of a standstill; if they were held twice as long, after 6 s, three times, after 9.

// longer is how many times as long as the others a caller must wait to be held.
// Deadlines that are meant to be the same differ by what a program does before it
// sends the request: by less than a quarter.
const longer = 1.25

// hurries is what a circuit knows about callers who do not wait. Its circuit's
// mu guards it.
type hurries struct {
	slowest time.Duration // of the answers of the last two Windows or so
	slowAt  time.Time     // when that one came
	pressed time.Time     // when a caller was last in a hurry
	sure    time.Time     // when something else than a caller's deadline last failed
	waited  time.Duration // how long the most patient waited in vain since the host last answered
	hasty   bool          // not closed: only callers' deadlines have opened the circuit
	hold    time.Time     // not closed: until then those who wait longer are held
	sounded bool          // not closed: the first of them was to be a probe
}

// timed notes how long an answer took.
func (c *circuit) timed(took time.Duration, now time.Time) {
	if took >= c.slowest || now.Sub(c.slowAt) > 2*c.cfg.Window {
		c.slowest, c.slowAt = took, now
	}
}

// hurried reports whether an attempt was ended by its caller sooner than the
// host lately answered others. A host that has answered nobody for as long as
// its slowest answer took may be down. What the circuit did not see, because all was
// well until now, the host's record knows.
func (c *circuit) hurried(v verdict, now time.Time) bool {
	if !v.hasty {
		return false
	}
	c.pressed = now
	c.calm.Store(false)
	slowest, spoke := v.usual, c.spoke
	if now.Sub(c.slowAt) <= 2*c.cfg.Window {
		slowest = max(slowest, c.slowest)
	}
	if v.spoke.After(spoke) {
		spoke = v.spoke
	}
	return now.Sub(v.sent) < slowest && now.Sub(spoke) <= slowest
}

// refutes reports whether v, an answer, shows that the callers whose deadlines
// opened the circuit, or those who suspected the host of silence, did not wait long
// enough.
func (c *circuit) refutes(v verdict) bool {
	return c.state != Closed && v.answered && (c.hasty && v.outcome == Success || c.guessed && v.outcome != Failure)
}

// vain notes a failure: how long a caller waited, or that it was none of the
// caller's doing.
func (c *circuit) vain(v verdict, now time.Time) {
	if v.hasty {
		c.waited = max(c.waited, now.Sub(v.sent))
	} else {
		c.sure = now
	}
}

// outlasts reports whether the circuit has just been opened by those alone who wait
// for less long than the caller of a request.
func (c *circuit) outlasts(a *ask, now time.Time) bool {
	if !c.hasty || !now.Before(c.hold) || c.sure.After(c.opened) || !c.cfg.lenient() || c.cfg.Fallback != nil {
		return false
	}
	d, ok := a.r.Context().Deadline()
	return !ok || d.Sub(now).Seconds() >= longer*c.waited.Seconds()
}
