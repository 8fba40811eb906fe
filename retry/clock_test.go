package retry

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// A clock that has struck, or may be about to, is never given to another
// flight; one that was stopped in time may be.
func TestClockServesOneFlightAtATime(t *testing.T) {
	p := new(clocks)
	f := newFlight(p, true)
	f.start(time.Hour)
	c := f.clock
	if c.of.Load() != f {
		t.Fatal("a clock that strikes for nobody")
	}
	f.release()
	if c.of.Load() != nil || f.clock != nil {
		t.Error("a clock that was put back still knows its flight")
	}
	c.strike() // nobody's
	if f.expired {
		t.Error("a clock that was put back struck")
	}

	f = newFlight(p, true)
	f.start(time.Hour)
	c = f.clock
	c.timer.Stop()
	c.strike()
	if f.release(); !f.expired || f.ctx.Err() == nil || c.of.Load() == nil {
		t.Error("a clock struck and ended nothing, or was put back")
	}

	f = newFlight(p, true)
	f.start(time.Hour)
	c = f.clock
	c.timer.Stop() // as if it had fired, and its goroutine had not begun
	f.stop(false)
	f.release()
	if c.of.Load() == nil {
		t.Error("a clock that may be about to strike was put back")
	}
	g := newFlight(p, true)
	g.start(time.Hour)
	c.strike()
	if _, expired := g.stop(false); expired || g.clock == c {
		t.Error("a late strike hit another flight")
	}
	g.release()
}

// What is timed on a bubble's clock stays in that bubble.
func TestClocksStayInTheirBubble(t *testing.T) {
	hang := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == "GET" {
			return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	w := Wire(hang, Config{AttemptTimeout: time.Hour, StallTimeout: time.Hour})
	get := func(t *testing.T) {
		for range 3 {
			resp, err := w.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
		}
	}
	get(t)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if reusable(time.Now()) {
				t.Error("a clock of this bubble could leave it")
			}
			get(t)
			start := time.Now()
			_, err := w.RoundTrip(request(t, "PUT", "http://a.example/", ""))
			if took := time.Since(start); err == nil || took != time.Hour {
				t.Errorf("%v after %v", err, took)
			}
			get(t)
		})
		get(t)
	}
	if !reusable(time.Now()) {
		t.Error("no clock is used twice")
	}
}

// Many flights that share clocks end when they should, by the clock or not:
// none by another's clock.
func TestSharedClocks(t *testing.T) {
	p := new(clocks)
	var wg sync.WaitGroup
	var struck atomic.Int64
	for g := range 64 {
		wg.Go(func() {
			for i := range 200 {
				f := newFlight(p, true)
				if (g+i)%8 == 0 {
					f.start(time.Duration(i+1) * time.Microsecond / 4)
					<-f.ctx.Done()
					struck.Add(1)
					f.release()
					continue
				}
				f.start(time.Hour)
				f.stop(false)
				f.start(time.Hour)
				if f.release(); f.expired {
					t.Error("an hour has passed too early")
				}
			}
		})
	}
	wg.Wait()
	if struck.Load() == 0 {
		t.Error("no clock struck")
	}
}
