package throttle

import "time"

// recentSpan is the shortest time that a state of refusing looks back; the
// longest is two of it. Callers that come every few seconds are seen in it, and
// a host that serves again is not blamed for long.
const recentSpan = instant(10 * time.Second)

// recent is what counters held when the present span of time began and when
// the one before it did. A span begins with the first event after the last one ended.
// Differences are right although the numbers wrap.
type recent struct {
	ends    instant // of the present span
	granted [2]uint32
	away    [2]uint32
}

// grant counts one that was let through.
func (c *counters) grant(now instant) {
	if now >= c.recent.ends {
		c.turn(now)
	}
	c.granted++
}

// turnAway counts one that got an error instead of room, also if it had waited
// until its deadline.
func (c *counters) turnAway(now instant) {
	if now >= c.recent.ends {
		c.turn(now)
	}
	c.more().away++
}

// turn begins a new span.
func (c *counters) turn(now instant) {
	x := &c.recent
	granted, away := uint32(c.granted), c.away()
	x.granted[0], x.away[0] = x.granted[1], x.away[1]
	if now-x.ends >= recentSpan { // nothing happened in the span before
		x.granted[0], x.away[0] = granted, away
	}
	x.granted[1], x.away[1] = granted, away
	x.ends = now.Add(time.Duration(recentSpan))
}

func (c *counters) away() uint32 {
	if c.rest == nil {
		return 0
	}
	return c.rest.away
}

// lately is how many were let through and turned away in the last 10 to 20 s.
func (c *counters) lately(now instant) (granted, away int) {
	x, since := &c.recent, 0
	switch {
	case now-x.ends >= recentSpan:
		return 0, 0
	case now >= x.ends:
		since = 1
	}
	return max(0, int(int32(uint32(c.granted)-x.granted[since]))), max(0, int(int32(c.away()-x.away[since])))
}

// refusing reports whether at least half of those that came lately were turned
// away; queued ones wait still.
func (c *counters) refusing(now instant, queued int) bool {
	granted, away := c.lately(now)
	return away > 0 && away >= granted+queued
}
