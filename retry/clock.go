package retry

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"
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
	among *clocks
	of    atomic.Pointer[flight] // nil: nobody's
	rings atomic.Int64           // when, by clocks.now; zero: not, or at this moment
}

// newClock returns a clock that is not set. Its timer, set or not, does not keep
// it: one that idles is dropped when others do, however late it would ring.
func newClock(p *clocks) *clock {
	c := &clock{among: p}
	w := weak.Make(c)
	c.timer = time.AfterFunc(time.Hour, func() {
		if c := w.Value(); c != nil {
			c.ring()
		}
	})
	c.timer.Stop()
	return c
}

// stopLast sees to it that the timer is stopped when nobody can have the clock
// any more, unless it is a bubble's, which must be left to that bubble.
func (c *clock) stopLast() {
	if reusable(time.Now()) {
		runtime.AddCleanup(c, func(t *time.Timer) { t.Stop() }, c.timer)
	}
}

// ring is the timer's. A flight that takes the clock says so before it asks when
// the timer rings, so that one of the two sees the other.
func (c *clock) ring() {
	if at := c.rings.Swap(0); at != 0 {
		c.among.heard(time.Duration(at))
	}
	c.tell()
}

func (c *clock) tell() {
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
	c.timer.Reset(due - now)
}

// unset stops the timer. A flight that takes the clock meanwhile sets it again.
func (c *clock) unset() {
	c.timer.Stop()
	c.rings.Store(0)
	c.tell()
}

// clocks are those of one Wire. Those that nobody has are kept for others, as
// connections are, and until close their timers may be set.
type clocks struct {
	epoch    time.Time
	traceKey any          // see traceKey
	idle     sync.Pool    // of *clock
	stood    atomic.Int64 // when a standstill was noticed last, by now; see heard

	mu  sync.Mutex
	all []weak.Pointer[clock] // that may be used again
	few int                   // below this length nobody looks which of all are gone
}

func newClocks() *clocks { return &clocks{epoch: time.Now(), traceKey: traceKey()} }

// now reads the clock on the wall, as it were.
func (p *clocks) now() time.Duration { return time.Since(p.epoch) }

// take returns a clock for f. again says that it may be one that was used before.
func (p *clocks) take(f *flight, again bool) *clock {
	var c *clock
	if again {
		c, _ = p.idle.Get().(*clock)
	}
	if c == nil {
		c = newClock(p)
		if again {
			p.note(c)
			c.stopLast()
		}
	}
	c.of.Store(f)
	return c
}

// note remembers a new clock for close.
func (p *clocks) note(c *clock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= p.few {
		p.all = slices.DeleteFunc(p.all, func(w weak.Pointer[clock]) bool { return w.Value() == nil })
		p.few = 2*len(p.all) + 16
	}
	p.all = append(p.all, weak.Make(c))
}

// put takes back a clock that has not struck.
func (p *clocks) put(c *clock) {
	c.of.Store(nil)
	p.idle.Put(c)
}

// close stops the timers that nobody needs.
func (p *clocks) close() {
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	for _, w := range all {
		if c := w.Value(); c != nil {
			c.unset()
		}
	}
}

// reusable reports whether a timer made at a moment that was read from the
// clock may be used by others. In a testing/synctest bubble, where readings
// are not monotonic, it must not: it runs on that bubble's time.
func reusable(now time.Time) bool { return now != now.Round(0) }
