package meter

import "time"

// civil is what the clock of t's place shows, as if that were UTC.
func civil(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// since is how far t's clock is past a multiple of per.
func since(t time.Time, per time.Duration) time.Duration {
	c := civil(t)
	return c.Sub(c.Truncate(per))
}

// WindowStart is the last instant, not after t, at which the clock of t's
// place showed a multiple of per or jumped over one.
func WindowStart(t time.Time, per time.Duration) time.Time {
	start := t.Add(-since(t, per))
	change, _ := t.ZoneBounds()
	for !change.IsZero() && start.Before(change) {
		if boundary(change, per) {
			return change
		}
		t = change.Add(-1)
		start = t.Add(-since(t, per))
		change, _ = t.ZoneBounds()
	}
	return start
}

// WindowEnd is the first instant after t at which the clock of t's place shows
// a multiple of per or jumps over one.
func WindowEnd(t time.Time, per time.Duration) time.Time {
	for {
		end := t.Add(per - since(t, per))
		_, change := t.ZoneBounds()
		if change.IsZero() || end.Before(change) {
			return end
		}
		if boundary(change, per) {
			return change
		}
		t = change
	}
}

// boundary reports whether the clock shows a multiple of per when it changes
// at t, or jumps over one there.
func boundary(t time.Time, per time.Duration) bool {
	after := since(t, per)
	if after == 0 {
		return true
	}
	jump := civil(t).Sub(civil(t.Add(-1))) - 1
	return jump > 0 && after <= jump
}
