package meter

import "time"

// A Clock is what is known of a server's clock: its Unix time less our Instant lies
// in [lo, hi]. Each Date header says that the server's clock stood within one second at
// some instant between send and receipt; the sections of many such intervals narrow to
// some milliseconds. The zero Clock knows nothing.
type Clock struct {
	lo, hi Instant
	known  bool
}

// mostDate is how far an offset may lie: no date of the next thousand years overflows, and
// no other is believed.
const mostDate = int64(9e9)

// Hear takes in a Date header, in Unix seconds, of an answer heard now to a request that
// was sent at sent.
func (c *Clock) Hear(now, sent Instant, unix int64) {
	if unix <= 0 || unix > mostDate || now < sent {
		return
	}
	d := Instant(unix) * Instant(time.Second)
	lo, hi := d-now, d+Instant(time.Second)-sent
	if c.known && lo <= c.hi && hi >= c.lo {
		c.lo, c.hi = max(c.lo, lo), min(c.hi, hi)
		return
	}
	c.lo, c.hi, c.known = lo, hi, true // the first, or the clock was set, or has drifted that far
}

// Known reports whether anything is known.
func (c *Clock) Known() bool { return c != nil && c.known }

// Ahead is the server's Unix time less our Instant, and by how much that may be off.
func (c *Clock) Ahead() (unix, doubt Instant) { return (c.lo + c.hi) / 2, (c.hi - c.lo) / 2 }

// Shows is the instant by which the server's clock shows a Unix time for certain.
func (c *Clock) Shows(unix int64) Instant { return Instant(unix)*Instant(time.Second) - c.lo }
