package meter

import (
	"math"
	"sync/atomic"
	"time"
)

// civil is the date and time that a clock at t's place shows, as a time in UTC.
func civil(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// since is how long ago the clock of t's place showed a multiple of per, if it has not
// been changed since.
func since(t time.Time, per time.Duration) time.Duration {
	c := civil(t)
	return c.Sub(c.Truncate(per))
}

// WindowStart is the last instant, not after t, at which the clock of t's
// place showed a multiple of per or was put forward over one.
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
// a multiple of per or is put forward over one.
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

// calendar counts the units of one window of a place's clock. Units whose answers have not
// come when the window ends count in the next one too, as the server may count them in
// either, unless they were granted more than the transit before the end.
type calendar struct {
	clock *Wall
	out   unanswered // granted, not answered, perhaps counted by the server in this window
	used  int64      // units of the window, out included
	start int64      // of the window, in nanoseconds since 1970
	end   int64      // likewise
}

// A Wall relates instants to the wall clock. As that may step, its owner calls Keep
// before each call of a meter with Align. It is safe for concurrent use.
type Wall struct {
	zero atomic.Int64 // what the wall's clock showed at instant 0, in nanoseconds since 1970
}

// mostOff is how many nanoseconds a Wall may be off before Keep corrects it. The owner reads
// two clocks one after the other, so each pair of readings differs a little. Without this
// bound every call would write what all processors read. The clocks of servers differ by
// more.
const mostOff = int64(100 * time.Microsecond)

// Set says what the wall clock showed at instant 0, in nanoseconds since 1970.
func (w *Wall) Set(zero int64) { w.zero.Store(zero) }

// Keep is Set if zero differs by more than mostOff: the clock has stepped or drifted.
func (w *Wall) Keep(zero int64) {
	if off := zero - w.zero.Load(); off < -mostOff || off > mostOff {
		w.Set(zero)
	}
}

// roll begins the window that now is in, if it is another one. When the clock
// steps back into an earlier window, what is used stays used.
func (c *calendar) roll(now Instant, s *Rate) {
	wall := c.clock.zero.Load() + int64(now)
	if wall >= c.start && wall < c.end {
		return
	}
	ended := wall >= c.end
	t := time.Unix(0, wall).In(s.Align)
	c.start = WindowStart(t, s.Per).UnixNano()
	c.end = WindowEnd(t, s.Per).UnixNano()
	if ended {
		c.out.forget(Instant(c.start-c.clock.zero.Load()) - s.transit())
		c.used = c.out.sum
	}
}

func (c *calendar) at(now Instant, s *Rate, n int64) Instant {
	c.roll(now, s)
	if n <= int64(s.Limit)-c.used {
		return now
	}
	return Instant(c.end - c.clock.zero.Load())
}

func (c *calendar) take(now Instant, s *Rate, n int64, held bool) {
	c.roll(now, s)
	n = min(n, math.MaxInt64-c.used)
	c.used += n
	if held {
		c.out.add(now, n)
	}
}

func (c *calendar) answered(now Instant, s *Rate, n int64, granted Instant) {
	c.roll(now, s)
	c.out.remove(granted, n)
}

func (c *calendar) back(now Instant, s *Rate, n int64, granted, answered Instant) {
	c.roll(now, s)
	date := granted + s.transit()
	if answered == 0 {
		c.out.remove(granted, n)
	} else {
		date = min(date, answered)
	}
	if c.clock.zero.Load()+int64(date) >= c.start {
		c.used = max(c.out.sum, c.used-n)
	}
}

// state puts what is in the window into s.
func (c *calendar) state(now Instant, r *Rate, s *State) {
	c.roll(now, r)
	if s.Left = float64(int64(r.Limit) - c.used); c.used > 0 {
		s.Full, s.Idle = Instant(c.end-c.clock.zero.Load()), false
	}
}

// even spreads the units left of a calendar's window over the time left of it.
// It keeps the last grant only, and computes each time when the next unit is due. So that
// changes when units are given back, the limit changes or the clock steps.
type even struct {
	last Instant // when the last units were granted
	n    int64   // how many they were, without those given back
}

// due is when the next unit may go. If none has gone in this window, that is now.
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

// take notes that n units are granted now.
func (e *even) take(now Instant, n int64) {
	if n > 0 {
		e.last, e.n = now, n
	}
}

// back notes that n units are given back, if they were granted last.
func (e *even) back(n int64, granted Instant) {
	if granted == e.last {
		e.n -= n
	}
}

// state puts into s whether a unit may go.
func (e *even) state(now Instant, c *calendar, r *Rate, s *State) {
	if s.Left = min(s.Left, 1); e.due(now, c, r) > now {
		s.Left = 0
	}
}
