package retry

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// A clock tells only the flight that has it, and that only when its time is over.
func TestClockServesOneFlightAtATime(t *testing.T) {
	p := newClocks()
	start := func() *flight {
		f := newFlight(p, true)
		f.start(p.now(), time.Hour)
		return f
	}
	f := start()
	c := f.clock
	if c.of.Load() != f {
		t.Fatal("a clock that rings for nobody")
	}
	c.ring()
	if _, expired := f.stop(false); expired || c.rings.Load() != int64(f.due) {
		t.Errorf("rang too early: expired %v, rings at %v, due at %v", expired, c.rings.Load(), f.due)
	}
	f.release()
	if c.of.Load() != nil || f.clock != nil {
		t.Error("a clock that was put back still knows its flight")
	}
	c.ring() // nobody's
	f.strike(c)
	if f.expired {
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
	c = f.clock
	f.clock.ring()
	if f.release(); !f.expired || f.ctx.Err() == nil || c.of.Load() == nil {
		t.Error("a clock struck and ended nothing, or was put back")
	}
}

// taker is a flight that has c, of p's. What a sync.Pool returns is chance,
// under the race detector at least.
func taker(t *testing.T, p *clocks, c *clock) *flight {
	t.Helper()
	f := newFlight(p, true)
	c.of.Store(f)
	f.clock = c
	return f
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
		c := f.clock
		time.Sleep(time.Second)
		f.release()
		g := taker(t, p, c)
		if g.start(p.now(), 30*time.Second); rings(c) != 30*time.Second {
			t.Errorf("the clock was set anew, to ring at %v", rings(c))
		}
		<-g.ctx.Done()
		if took := time.Since(begin); took != 31*time.Second || !g.expired {
			t.Errorf("struck after %v, want 31 s", took)
		}
		g.release()

		f = newFlight(p, true)
		f.start(p.now(), time.Minute)
		f.stop(false) // as between two Reads
		time.Sleep(time.Hour)
		synctest.Wait()
		if rings(f.clock) != 0 {
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
			if clocks[i] = f.clock; i > 0 {
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
	w := Wire(stub(), Config{}).(*wire)
	if _, err := w.RoundTrip(request(t, "GET", "http://a.example/", "")); err != nil {
		t.Fatal(err)
	}
	c := w.clocks.all[0].Value()
	if c == nil || c.rings.Load() == 0 {
		t.Fatal("no timer was set")
	}
	w.CloseIdleConnections()
	if c.rings.Load() != 0 || c.timer.Stop() {
		t.Error("a timer is left")
	}
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

// Without one of the two timeouts the other holds.
func TestOneTimeoutAlone(t *testing.T) {
	for name, c := range map[string]Config{
		"headers": {MaxAttempts: 1, AttemptTimeout: time.Second, StallTimeout: -1},
		"body":    {MaxAttempts: 1, AttemptTimeout: -1, StallTimeout: time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if name == "body" {
					return testnet.Answer(r, 200, nil, &stalled{r.Context()}), nil
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			start := time.Now()
			resp, err := newTransport(t, base, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if name == "body" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = resp.Body.Read(make([]byte, 1))
			}
			var late *TimeoutError
			if !errors.As(err, &late) || late.Body != (name == "body") || time.Since(start) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	}
}

// stalled is a body whose Read lasts until its request's end.
type stalled struct{ ctx context.Context }

func (s *stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s *stalled) Close() error { return nil }

// Tests in this file were written for changes of the code that no other test
// noticed; docs/testing-weir.md says how they are found.

// The two timeouts say which of them it was.
func TestTimeoutErrorText(t *testing.T) {
	for body, want := range map[bool]string{
		false: "retry: a.example: no response headers within 30s",
		true:  "retry: a.example: response body stalled for 30s",
	} {
		if got := (&TimeoutError{Host: "a.example", Limit: 30 * time.Second, Body: body}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The base learns from the context's cause why its attempt was ended.
func TestAttemptTimeoutIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			cause = context.Cause(r.Context())
			return nil, r.Context().Err()
		})
		rt := newTransport(t, base, Config{MaxAttempts: 1, AttemptTimeout: time.Second})
		if _, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err == nil {
			t.Fatal("no error")
		}
		var timeout *TimeoutError
		if !errors.As(cause, &timeout) || timeout.Limit != time.Second {
			t.Errorf("the cause was %v", cause)
		}
	})
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
				if f.release(); f.expired {
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
