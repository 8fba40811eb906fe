package retry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// These tests are in the package because a clock that is set too often, kept too long
// or shared wrongly costs time and memory and ends attempts once in a long while, which
// callers see by chance only.

// newFlight is a flight with nothing but a clock and a context.
func newFlight(p *clocks, again bool) *flight {
	f := &flight{r: &http.Request{URL: new(url.URL)}}
	f.ctx.again = again
	f.ctx.clocks = p
	f.ctx.Context = context.Background()
	return f
}

// A clock tells only the flight that has it, and that only when its time is over.
func TestClockServesOneFlightAtATime(t *testing.T) {
	p := newClocks()
	start := func() *flight {
		f := newFlight(p, true)
		f.start(p.now(), time.Hour)
		return f
	}
	f := start()
	c := f.ctx.clock
	if c.of.Load() != f {
		t.Fatal("a clock that rings for nobody")
	}
	c.ring()
	if _, expired := f.stop(false); expired || c.rings.Load() != int64(f.due) {
		t.Errorf("rang too early: expired %v, rings at %v, due at %v", expired, c.rings.Load(), f.due)
	}
	f.release()
	if c.of.Load() != nil || f.ctx.clock != nil {
		t.Error("a clock that was put back still knows its flight")
	}
	c.ring() // nobody's
	f.strike(c)
	if f.ctx.expired {
		t.Error("a clock that was put back struck")
	}
	if c.rings.Load() != 0 {
		t.Error("a clock that rang for nobody is taken to be set")
	}

	p.put(c)
	g := taker(t, p, c)
	if g.start(p.now(), time.Hour); c.rings.Load() != int64(g.due) {
		t.Error("a clock that rang for nobody was not set")
	}
	f.strike(c) // a ring that found f, and was held up until now
	if _, expired := g.stop(false); expired {
		t.Error("a late ring hit another flight")
	}
	g.release()

	f = start()
	f.due = p.now() - 1
	c = f.ctx.clock
	f.ctx.clock.ring()
	if f.release(); !f.ctx.expired || f.ctx.Err() == nil || c.of.Load() == nil {
		t.Error("a clock struck and ended nothing, or was put back")
	}
}

// taker is a flight that has c, of p's. What a sync.Pool returns is chance,
// under the race detector at least.
func taker(t *testing.T, p *clocks, c *clock) *flight {
	t.Helper()
	f := newFlight(p, true)
	c.of.Store(f)
	f.ctx.clock = c
	return f
}

// A clock that fires just as it is stopped or set anew ends nothing.
func TestALateClockEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight(newClocks(), false)
		f.start(f.ctx.clocks.now(), time.Hour)
		first := f.ctx.clock
		f.stop(false)
		first.ring()
		f.start(f.ctx.clocks.now(), time.Hour)
		first.ring() // it was about to before it was set
		if _, expired := f.stop(false); expired || f.ctx.Err() != nil {
			t.Errorf("ended: %v", context.Cause(&f.ctx))
		}
		f.start(f.ctx.clocks.now(), time.Hour)
		time.Sleep(time.Hour)
		synctest.Wait()
		var late *TimeoutError
		if _, expired := f.stop(false); !expired || !errors.As(context.Cause(&f.ctx), &late) || late.Limit != time.Hour {
			t.Errorf("after an hour: %v", context.Cause(&f.ctx))
		}
	})
}

// A timer that is set stays set as long as it does not ring too late. Each
// flight ends at its own time all the same.
func TestClockIsSetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClocks()
		begin := time.Now()
		rings := func(c *clock) time.Duration { return time.Duration(c.rings.Load()) }
		f := newFlight(p, true)
		f.start(p.now(), 30*time.Second)
		c := f.ctx.clock
		time.Sleep(time.Second)
		f.release()
		g := taker(t, p, c)
		if g.start(p.now(), 30*time.Second); rings(c) != 30*time.Second {
			t.Errorf("the clock was set anew, to ring at %v", rings(c))
		}
		<-g.ctx.Done()
		if took := time.Since(begin); took != 31*time.Second || !g.ctx.expired {
			t.Errorf("struck after %v, want 31 s", took)
		}
		g.release()

		f = newFlight(p, true)
		f.start(p.now(), time.Minute)
		f.stop(false) // as between two Reads
		time.Sleep(time.Hour)
		synctest.Wait()
		if rings(f.ctx.clock) != 0 {
			t.Error("a stopped clock is set for ever")
		}
		for _, limit := range []time.Duration{time.Minute, 5 * time.Second} { // the second one sooner than it rings
			f.start(p.now(), limit)
			if limit == time.Minute {
				f.stop(false)
			}
		}
		begin = time.Now()
		<-f.ctx.Done()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("struck after %v, want 5 s", took)
		}
	})
}

// Nothing rings after close but what somebody has, and that at its time.
func TestClocksClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClocks()
		flights := make([]*flight, 100)
		for i := range flights {
			flights[i] = newFlight(p, true)
			flights[i].start(p.now(), time.Minute)
		}
		clocks := make([]*clock, len(flights))
		for i, f := range flights {
			if clocks[i] = f.ctx.clock; i > 0 {
				f.release()
			}
		}
		time.Sleep(time.Second)
		p.close()
		for i, c := range clocks {
			if set := c.rings.Load() != 0; set != (i == 0) {
				t.Fatalf("clock %d: set %v", i, set)
			}
			if i > 0 && c.timer.Stop() {
				t.Fatal("a timer that nobody needs runs on")
			}
		}
		<-flights[0].ctx.Done()
		if now := p.now(); now != time.Minute {
			t.Errorf("struck after %v", now)
		}
	})
}

// What close has to know of are the clocks that there are, not those that there
// were.
func TestClocksForgotten(t *testing.T) {
	p := newClocks()
	for i := range 10000 {
		p.note(new(clock)) // it is garbage now
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if n := len(p.all); n > 5000 {
		t.Errorf("%d clocks are remembered", n)
	}
}

// CloseIdleConnections reaches them.
func TestCloseIdleStopsClocks(t *testing.T) {
	w := Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, nil), nil
	}), Config{}).(*wire)
	testnet.MustGet(t, w, "http://a.example/")
	c := w.clocks.all[0].Value()
	if c == nil || c.rings.Load() == 0 {
		t.Fatal("no timer was set")
	}
	w.CloseIdleConnections()
	if c.rings.Load() != 0 || c.timer.Stop() {
		t.Error("a timer is left")
	}
}

// Many flights that share clocks end when they should, by the clock or not:
// none by another's clock.
func TestSharedClocks(t *testing.T) {
	p := newClocks()
	var wg, closing sync.WaitGroup
	var struck atomic.Int64
	over := make(chan struct{})
	closing.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				p.close()
			}
		}
	})
	for g := range 64 {
		wg.Go(func() {
			for i := range 200 {
				f := newFlight(p, true)
				switch (g + i) % 8 {
				case 0:
					f.start(p.now(), time.Duration(i+1)*time.Microsecond/4)
					<-f.ctx.Done()
					struck.Add(1)
					f.release()
					continue
				case 1, 2: // whose timer rings for others, perhaps
					f.start(p.now(), time.Duration(i+1)*time.Microsecond/4)
					f.release()
					continue
				}
				f.start(f.ctx.clocks.now(), time.Hour)
				f.stop(false)
				f.start(f.ctx.clocks.now(), time.Hour)
				if f.release(); f.ctx.expired {
					t.Error("an hour has passed too early")
				}
			}
		})
	}
	wg.Wait()
	close(over)
	closing.Wait()
	if struck.Load() == 0 {
		t.Error("no clock struck")
	}
}
