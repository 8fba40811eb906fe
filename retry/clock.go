package retry

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock is a timer that strikes for one flight at a time.
//
// Setting a timer costs more than all else that a clock does, and hardly one
// strikes. So a timer that is set stays set when its flight stops the clock, and
// is set anew only if it would ring too late: ringing too early, it finds out and
// goes on for what is left, for whichever flight has the clock by then. One that
// rings for nobody is not set until somebody needs it.
type clock struct {
	timer *time.Timer
	of    atomic.Pointer[flight] // nil: nobody's
	rings atomic.Int64           // when, by clocks.now; zero: not, or at this moment
}

// ring is the timer's. A flight that takes the clock says so before it asks when
// the timer rings, so that one of the two sees the other.
func (c *clock) ring() {
	c.rings.Store(0)
	if f := c.of.Load(); f != nil {
		f.strike(c)
	}
}

// set sees to it that the timer rings at due at the latest.
func (c *clock) set(now, due time.Duration) {
	if at := c.rings.Load(); at != 0 && at <= int64(due) {
		return
	}
	c.rings.Store(int64(due))
	if c.timer == nil {
		c.timer = time.AfterFunc(due-now, c.ring)
	} else {
		c.timer.Reset(due - now)
	}
}

// unset stops the timer, which was set before.
func (c *clock) unset() {
	c.timer.Stop()
	c.rings.Store(0)
}

// clocks are those of one Wire. Those that nobody has are kept for others, as
// connections are, and until close their timers may be set.
type clocks struct {
	epoch time.Time
	mu    sync.Mutex
	idle  []*clock
}

// mostIdle is how many clocks are kept.
const mostIdle = 256

func newClocks() *clocks { return &clocks{epoch: time.Now()} }

// now reads the clock on the wall, as it were.
func (p *clocks) now() time.Duration { return time.Since(p.epoch) }

// take returns a clock for f. again says that it may be one that was used before.
func (p *clocks) take(f *flight, again bool) *clock {
	var c *clock
	if again {
		p.mu.Lock()
		if last := len(p.idle) - 1; last >= 0 {
			c = p.idle[last]
			p.idle[last] = nil
			p.idle = p.idle[:last]
		}
		p.mu.Unlock()
	}
	if c == nil {
		c = new(clock)
	}
	c.of.Store(f)
	return c
}

// put takes back a clock that has not struck.
func (p *clocks) put(c *clock) {
	c.of.Store(nil)
	p.mu.Lock()
	keep := len(p.idle) < mostIdle
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.unset()
	}
}

// close drops the clocks that nobody has.
func (p *clocks) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.unset()
	}
}

// reusable reports whether a timer made at a moment that was read from the
// clock may be used by others. In a testing/synctest bubble, where readings
// are not monotonic, it must not: it runs on that bubble's time.
func reusable(now time.Time) bool { return now != now.Round(0) }
