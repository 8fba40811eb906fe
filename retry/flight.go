package retry

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/trip"
)

// flight is an attempt from the wire to the end of its response body, which
// it stands in for.
type flight struct {
	ctx   attemptContext
	r     *http.Request // what the base gets
	stall time.Duration
	body  *upload // nil: there is none worth watching
	resp  io.ReadCloser

	// Under ctx.mu, so that all that an attempt's end changes is changed at once.
	limit time.Duration // that the clock was started with
	due   time.Duration // when it strikes, by clocks.now, unless until moves that
}

// stand is how far a flight has come. It stands in attemptContext because there it takes no
// memory of its own. It is under mu, except where another rule stands beside a field.
type stand struct {
	again    bool // its clock may have been another's and may be another's; does not change
	running  bool // the clock
	expired  bool
	landed   bool // the attempt failed, or its body has ended
	answered bool // the base returned an answer; written before anybody else has the flight
	stood    bool // the clock struck late, and was started once more
}

// tracked is a flight whose base is known to look for a trace.
type tracked struct {
	flight
	shown shown
}

// carry gives the attempt its body.
func (f *flight) carry(body *upload) {
	if !trip.Unclosable(body.ReadCloser) {
		// HTTP/1 waits for a blocked Read of the body past the end of the
		// context (golang.org/issue/78555).
		body.unwatch = context.AfterFunc(f.ctx.real(), body.close)
	}
	f.body, f.r.Body = body, body
	if f.r.GetBody != nil {
		f.r.GetBody = body.again(f.r.GetBody)
	}
}

// start starts the clock at now; a limit of 0 is none.
func (f *flight) start(now, limit time.Duration) {
	if limit == 0 {
		return
	}
	f.ctx.mu.Lock()
	if !f.ctx.landed { // else it is read on after the end: nobody would give a clock back
		f.set(now, limit)
	}
	f.ctx.mu.Unlock()
}

// set is start, for whom holds ctx.mu, or alone has the flight.
func (f *flight) set(now, limit time.Duration) {
	f.limit, f.due, f.ctx.running = limit, later(now, limit), true
	if f.ctx.clock == nil {
		f.ctx.clocks.lend(f)
	}
	f.ctx.clock.set(now, f.due)
}

// stop stops the clock and reports whether it has struck. The last time, when
// the attempt failed or its body has ended or there is none, it frees the
// context and the clock as well.
func (f *flight) stop(last bool) (limit time.Duration, expired bool) { return f.halt(last, nil) }

// halt is stop. If the base has just returned, *e becomes what is known of the attempt.
func (f *flight) halt(last bool, e *evidence) (limit time.Duration, expired bool) {
	f.ctx.mu.Lock()
	if f.ctx.running && !f.ctx.again {
		f.ctx.clock.timer.Stop() // a bubble's test may count timers
		f.ctx.clock.rings.Store(0)
	}
	f.ctx.running = false
	limit, expired = f.limit, f.ctx.expired
	var c *clock
	var watchers watchers
	ends := last && !f.ctx.landed
	if ends {
		c, watchers = f.ctx.clock, f.ctx.finish()
		if s := f.ctx.shown; s != nil {
			if h := s.leave(f.ctx.answered); h != nil && c != nil {
				c.keep(h)
			}
		}
		f.ctx.landed, f.ctx.clock = true, nil
	}
	if e != nil {
		*e = f.evidence()
	}
	f.ctx.mu.Unlock()
	if !ends {
		return limit, expired
	}
	if c != nil && f.ctx.again {
		f.ctx.clocks.put(c)
	}
	if f.body != nil && f.body.unwatch != nil && f.body.done() {
		f.body.unwatch()
	}
	watchers.tell(nil)
	return limit, expired
}

func (f *flight) release() { f.stop(true) }

// strike ends the attempt if its time is over, unless c was stopped just as it
// rang.
func (f *flight) strike(c *clock) {
	f.ctx.mu.Lock()
	over := f.ctx.running && f.ctx.clock == c
	if over {
		now := f.ctx.clocks.now()
		if until := f.until(now); now < until {
			c.set(now, until)
			over = false
		}
	}
	var err error
	if over { // else the body may be set at this moment
		f.ctx.running, f.ctx.expired, f.ctx.clock = false, true, nil
		err = f.late(f.limit)
	}
	f.ctx.mu.Unlock()
	if over {
		f.ctx.end(err)
	}
}

// until says until when the attempt, or the Read of its answer's body, may go
// on; now is when its clock rang. Waiting for a connection that others have does
// not count. While the request's body is read, or interim answers come, the time
// begins anew. If the clock strikes late, this process stood still, and what came
// meanwhile has not been read: the clock starts once more.
func (f *flight) until(now time.Duration) time.Duration {
	due := f.due
	if f.resp == nil {
		if s := f.ctx.shown; s != nil {
			due = s.until(due, now, f.limit)
		}
		if f.body != nil {
			due = max(due, later(f.body.last(), f.limit))
		}
	}
	if stoodStill(now-due, f.limit) && !f.ctx.stood {
		f.ctx.stood, f.due = true, later(now, f.limit)
		due = f.due
	}
	return due
}

// late is the error of a clock that struck.
func (f *flight) late(limit time.Duration) *TimeoutError {
	return &TimeoutError{Host: hosts.Key(f.r), Limit: limit, Body: f.resp != nil}
}

// evidence is what is known of an attempt that the base has returned from. ctx.mu is held.
func (f *flight) evidence() (e evidence) {
	if f.ctx.shown != nil {
		e = f.ctx.shown.seen(f.ctx.clocks)
	}
	e.watched, e.full = true, f.ctx.full
	return e
}

// stage is what the attempt, which failed, was waiting for.
func (f *flight) stage(e evidence, expired bool) trip.Stage {
	switch {
	case e.phase == waiting && !expired:
		return trip.Queued
	case e.phase == waiting, e.phase == dialling:
		return trip.Dialling
	case f.body != nil && !f.body.ended.Load():
		return trip.Sending
	}
	return trip.Answering
}

// guard puts the flight in the place of the response's body.
func (f *flight) guard(resp *http.Response) {
	if resp.Body == http.NoBody { // all is over
		return
	}
	if f.stall > 0 && quiet(f.r, resp) {
		f.stall = 0
	}
	f.resp = resp.Body
	resp.Body = f
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if rw, ok := f.resp.(io.ReadWriteCloser); ok {
			resp.Body = &duplex{f, rw}
		}
	}
}

// Read is the response body's. Its clock runs only while it is blocked.
func (f *flight) Read(b []byte) (int, error) {
	if f.stall > 0 {
		f.start(f.ctx.clocks.now(), f.stall)
	}
	n, err := f.resp.Read(b)
	if f.stall > 0 || err != nil {
		if limit, expired := f.stop(err != nil); expired && err != nil { // also io.EOF: what was cut has no end
			err = f.late(limit)
		}
	}
	return n, err
}

// Close is the response body's.
func (f *flight) Close() error {
	err := f.resp.Close()
	f.release()
	return err
}

// duplex is the body of a 101, which is written to as well.
type duplex struct {
	*flight
	w io.ReadWriteCloser
}

func (d *duplex) Read(b []byte) (int, error)  { return d.w.Read(b) }
func (d *duplex) Write(b []byte) (int, error) { return d.w.Write(b) }

// CloseWrite closes the writing side alone.
func (d *duplex) CloseWrite() error { return trip.CloseWrite(d.w) }
