package retry

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/weirhttp/weir/internal/trip"
)

// clock is a timer that serves one flight at a time. It strikes when the flight's
// time is over.
//
// Setting a timer costs more than everything else that a clock does, and hardly
// any clock strikes. So when a flight stops its clock, the timer stays set, and the
// next flight sets it anew only if it would ring too late for it. If the timer rings
// too early, it is set for what is left of the time of the flight that has the clock
// by then. If no flight has the clock, it is not set again until one needs it.
type clock struct {
	timer *time.Timer
	among *clocks
	of    atomic.Pointer[flight] // nil: nobody's
	rings atomic.Int64           // when, by clocks.now; zero: not, or at this moment

	// What the context of one attempt leaves to that of the next, if nobody else has it.
	// Under the mu of the context that has the clock.
	done  chan struct{} // nil: make one
	hooks [2]*hooks     // the second tell of headers; nil: make them
}

// channel returns one that is open. c may be nil.
func (c *clock) channel() chan struct{} {
	if c == nil || c.done == nil {
		return make(chan struct{})
	}
	done := c.done
	c.done = nil
	return done
}

// hooksFor returns hooks for an attempt. c may be nil.
func (c *clock) hooksFor(full, direct bool) *hooks {
	if c == nil || !direct {
		return newHooks(full, direct)
	}
	i := 0
	if full {
		i = 1
	}
	h := c.hooks[i]
	if c.hooks[i] = nil; h == nil {
		h = newHooks(full, direct)
		h.lent = true
	}
	return h
}

// keep keeps h for hooksFor.
func (c *clock) keep(h *hooks) {
	i := 0
	if h.trace.WroteHeaders != nil {
		i = 1
	}
	c.hooks[i] = h
}

// newClock returns a clock that is not set. Its timer holds the clock by a weak
// pointer: an idle clock is collected as garbage even while its timer is set.
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

// stopLast makes the timer stop when the clock is collected as garbage. The timer
// of a testing/synctest bubble is left alone, because only its bubble may stop it.
func (c *clock) stopLast() {
	if trip.Monotonic(time.Now()) {
		runtime.AddCleanup(c, func(t *time.Timer) { t.Stop() }, c.timer)
	}
}

// ring is called by the timer. A flight that takes the clock first stores itself in
// of and then reads rings, so either ring sees the flight or the flight sees that the
// timer has rung.
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

// set makes the timer ring at due, or earlier if it is set for an earlier time.
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

// clocks are the clocks of one Wire. A clock that no flight has is kept for later
// flights, as idle connections are. Its timer may stay set until close.
type clocks struct {
	epoch    time.Time
	direct   bool         // the base is an http.Transport; see attemptContext
	looks    atomic.Bool  // the base looks for what is in shown, as it did before
	traceKey any          // see traceKey
	asks     uint32       // see asksOfOne
	idle     sync.Pool    // of *clock
	stood    atomic.Int64 // when a standstill was noticed last, by now; see heard

	mu  sync.Mutex
	all []weak.Pointer[clock] // that may be used again
	few int                   // below this length nobody looks which of all are gone
}

func newClocks() *clocks {
	return &clocks{epoch: time.Now(), traceKey: traceKey(), asks: asksOfOne()}
}

// now is the time since epoch, by which all clocks count.
func (p *clocks) now() time.Duration { return time.Since(p.epoch) }

// lend gives f a clock. That has f only when all of f is set, as it may ring at any time.
func (p *clocks) lend(f *flight) {
	var c *clock
	again := f.ctx.again
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
	f.ctx.clock = c
	c.of.Store(f)
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
