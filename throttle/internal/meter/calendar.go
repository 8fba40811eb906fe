package meter

import (
	"math"
	"sync/atomic"
	"time"
)

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

// calendar counts the units of one window of a place's clock. Units under way
// when the window ends count in the next one too: nobody knows where the server
// counts them. It has seen them the transit after they were granted.
type calendar struct {
	clock *Wall
	out   unanswered // granted, not answered, perhaps seen in this window
	used  int64      // out included
	start int64      // of the window, in nanoseconds of the wall's clock
	end   int64
}

// A Wall relates instants to the clock on the wall. That may step, so its owner
// keeps it before each call. It is safe for concurrent use.
type Wall struct {
	zero atomic.Int64 // what the wall's clock showed at instant 0, in nanoseconds since 1970
}

// mostOff is by how much a Wall may be off that is kept. Its owner's two readings
// never agree to the nanosecond, and what does not change is not written, so that
// processors need not fetch it from one another; the clocks of servers are off by
// more.
const mostOff = int64(100 * time.Microsecond)

// Set says what the clock showed at instant 0.
func (w *Wall) Set(zero int64) { w.zero.Store(zero) }

// Keep is Set if the clock has stepped or drifted since.
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

// state tells s what is in the window.
func (c *calendar) state(now Instant, r *Rate, s *State) {
	c.roll(now, r)
	if s.Left = float64(int64(r.Limit) - c.used); c.used > 0 {
		s.Full, s.Idle = Instant(c.end-c.clock.zero.Load()), false
	}
}

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
