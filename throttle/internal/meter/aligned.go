package meter

import (
	"math"
	"sync/atomic"
	"time"
)

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
