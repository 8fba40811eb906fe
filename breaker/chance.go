package breaker

// A circuit opens when calls are hopeless. Whether they are is told from chance
// by a run of failures: how long it must be depends on how often the host has
// lately succeeded. After good days a few failures in a row say that it is down.
// A host that fails half of its attempts has such runs all day, and still serves
// 7 of 8 calls that make three attempts each.
//
// How often it fails is itself known from a few calls only. So the run that opens
// is one that a host of which these calls were seen shows once in 1/rare attempts, over
// all rates at which it may fail (the beta-binomial distribution). It is never
// shorter than Consecutive allows, and never longer than longest.
//
// Timeouts are no chance. They come from load, keep each caller for as long as
// one may take, and more of the same makes them worse: when half of the calls
// end so, the circuit opens.

const (
	// rare is the probability of a run that is not put down to chance. With 1e-5 a
	// host that fails half of 100 calls a second opens its circuit once in an hour,
	// for about a second; with 1e-4 once in 6 minutes, with 1e-3 every 20 s.
	rare = 1e-5
	// longest is the run that opens whatever was before. A host that succeeds
	// once in five hardly has one, one that succeeds once in ten has one a
	// minute at 100 attempts a second, and one that succeeds once in a hundred
	// is given up at once.
	longest = 60
	// memory is over how many calls the success rate is taken. With fewer the
	// rate itself is a matter of chance: over 8, a host that fails
	// half has at times succeeded always, and is given up for the next run.
	memory = 32
)

// chance is what is known of how often a host succeeds. Its zero value is one
// that always did.
type chance struct {
	bad      float64 // share of failures, lately
	timeouts float64 // share of calls that our own clock ended, lately
	run      int     // failures that are not put down to chance, as of the last success
}

func (c *chance) succeeded() {
	c.late()
	c.expect()
}

// late counts a success that says nothing of the failures before it: it began before them.
func (c *chance) late() { c.bad -= c.bad / memory }

func (c *chance) failed() { c.bad += (1 - c.bad) / memory }

// expect works out the run: each further failure makes the next more likely.
func (c *chance) expect() {
	c.run = 0
	if c.bad == 0 {
		return
	}
	failed := c.bad * memory
	for p := 1.; p > rare && c.run < longest; c.run++ {
		p *= (failed + float64(c.run)) / (memory + float64(c.run))
	}
}

// seen is for the probes that closed a circuit: so little was asked since it
// opened that they count for more than the calls before.
func (c *chance) seen(good, bad int) {
	c.bad = max(c.bad, float64(bad)/float64(good+bad))
	c.expect()
}

// timed counts a call that our own clock has ended, or not.
func (c *chance) timed(out bool) {
	c.timeouts -= c.timeouts / memory
	if out {
		c.timeouts += 1. / memory
	}
}

// hopeless reports whether n failures in a row are more than chance, if least
// would be too many for a host that is well.
func (c *chance) hopeless(n, least int) bool { return n >= max(least, c.run) }
