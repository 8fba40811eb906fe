package meter

// even spreads what is left of a calendar's window over what is left of its time.
// It keeps the last grant and works out when the next unit is due from what is left
// now: a grant that is given back, a new limit or a clock that steps moves it.
type even struct {
	last Instant // when the last units went
	n    int64   // how many; of those given back, none
}

// due is when the next unit may go: at once in a window in which none has.
func (e *even) due(now Instant, c *calendar, s *Rate) Instant {
	c.roll(now, s)
	zero := c.clock.zero.Load()
	end := Instant(c.end - zero)
	if e.n <= 0 || e.last < Instant(c.start-zero) {
		return now
	}
	left := float64(int64(s.Limit)-c.used) + float64(e.n)
	if left <= float64(e.n) {
		return max(now, end)
	}
	return max(now, min(end, e.last+Instant(float64(end-e.last)*float64(e.n)/left)))
}

// eta is about when a unit may go after ahead others.
func (e *even) eta(now Instant, c *calendar, s *Rate, ahead int64) Instant {
	t, end := e.due(now, c, s), Instant(c.end-c.clock.zero.Load())
	if ahead <= 0 || t >= end {
		return t
	}
	left := float64(max(1, int64(s.Limit)-c.used))
	return t + Instant(float64(end-t)*min(1, float64(ahead)/left))
}

// take notes n units that go now.
func (e *even) take(now Instant, n int64) {
	if n > 0 {
		e.last, e.n = now, n
	}
}

// back gives the time of n units granted at an instant back, if they were the last.
func (e *even) back(n int64, granted Instant) {
	if granted == e.last {
		e.n -= n
	}
}

// state tells s whether a unit may go.
func (e *even) state(now Instant, c *calendar, r *Rate, s *State) {
	if s.Left = min(s.Left, 1); e.due(now, c, r) > now {
		s.Left = 0
	}
}
