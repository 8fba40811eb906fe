package retry

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock is a timer that strikes for one flight at a time. A struck or late one
// never serves another: what it may still do is then about its own flight,
// which knows that the clock is no longer its own.
type clock struct {
	timer *time.Timer
	of    atomic.Pointer[flight]
}

func (c *clock) strike() {
	if f := c.of.Load(); f != nil {
		f.strike(c)
	}
}

// clocks are those that were stopped in time and may serve again.
type clocks struct{ pool sync.Pool }

// start returns a clock that strikes for f after limit. again says that it may
// be one that was used before.
func (p *clocks) start(f *flight, limit time.Duration, again bool) *clock {
	if again {
		if c, ok := p.pool.Get().(*clock); ok {
			c.of.Store(f)
			c.timer.Reset(limit)
			return c
		}
	}
	c := new(clock)
	c.of.Store(f)
	c.timer = time.AfterFunc(limit, c.strike)
	return c
}

// put takes back a clock that was stopped before it struck.
func (p *clocks) put(c *clock) {
	c.of.Store(nil)
	p.pool.Put(c)
}

// reusable reports whether a timer made at a moment that was read from the
// clock may be used by others. In a testing/synctest bubble, where readings
// are not monotonic, it must not: it runs on that bubble's time.
func reusable(now time.Time) bool { return now != now.Round(0) }
