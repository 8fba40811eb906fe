package throttle

// lately counts what came in the last recentFor or so, as a sliding counter does. The
// zero lately has counted nothing. Its owner guards it.
type lately struct {
	since         instant
	before, these uint32 // in the time before since, and from then on
}

func (c *lately) add(now instant) {
	c.turn(now)
	c.these++
}

// rate is how many came per second.
func (c *lately) rate(now instant) float64 {
	c.turn(now)
	left := 1 - now.Sub(c.since).Seconds()/recentFor.Seconds()
	return (float64(c.before)*left + float64(c.these)) / recentFor.Seconds()
}

func (c *lately) turn(now instant) {
	d := now.Sub(c.since)
	if d < recentFor {
		return
	}
	if c.before = c.these; d >= 2*recentFor {
		c.before = 0
	}
	c.since, c.these = now, 0
}
