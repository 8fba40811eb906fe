package retry

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// flight is an attempt from the wire to the end of its response body, which
// it stands in for.
type flight struct {
	ctx     attemptContext
	r       http.Request // what the base gets
	stall   time.Duration
	body    *upload
	unwatch func() bool
	resp    io.ReadCloser

	mu      sync.Mutex
	clocks  *clocks
	again   bool          // its clock may have been another's and may be another's
	clock   *clock        // nil: none yet, or the last one cannot be used again
	limit   time.Duration // that the clock was set to
	running bool
	expired bool
	over    bool
}

// start sets the clock; 0 is none.
func (f *flight) start(limit time.Duration) {
	if limit == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit, f.running = limit, true
	if f.clock != nil {
		f.clock.timer.Reset(limit)
	} else {
		f.clock = f.clocks.start(f, limit, f.again)
	}
}

// stop stops the clock and reports whether it has struck.
func (f *flight) stop() (limit time.Duration, expired bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.halt()
	return f.limit, f.expired
}

// halt is stop with mu held. A clock that has fired is given up: it may be
// about to strike.
func (f *flight) halt() {
	if f.running && !f.clock.timer.Stop() {
		f.clock = nil
	}
	f.running = false
}

// strike ends the attempt, unless c was stopped just as it fired.
func (f *flight) strike(c *clock) {
	f.mu.Lock()
	now := f.running && f.clock == c
	var err error
	if now { // else the body may be set at this moment
		f.running, f.expired, f.clock = false, true, nil
		err = f.late(f.limit)
	}
	f.mu.Unlock()
	if now {
		f.ctx.end(err)
	}
}

// late is the error of a clock that struck.
func (f *flight) late(limit time.Duration) *TimeoutError {
	return &TimeoutError{Host: hosts.Key(&f.r), Limit: limit, Body: f.resp != nil}
}

// release frees the context and the clock. It is called when the attempt is
// over: failed, or its body read to the end or closed.
func (f *flight) release() {
	f.mu.Lock()
	f.halt()
	first, c := !f.over, f.clock
	f.over, f.clock = true, nil
	f.mu.Unlock()
	if !first {
		return
	}
	if c != nil && f.again {
		f.clocks.put(c)
	}
	if f.unwatch != nil && f.body.done() {
		f.unwatch()
	}
	f.ctx.end(nil)
}

// guard puts the flight in the place of the response's body.
func (f *flight) guard(resp *http.Response) {
	switch {
	case resp.Body == http.NoBody:
		f.release()
		return
	case resp.StatusCode == http.StatusSwitchingProtocols, eventStream(resp.Header):
		f.stall = 0
	}
	f.resp = resp.Body
	resp.Body = f
	if rw, ok := f.resp.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &duplex{f, rw}
	}
}

// Read is the response body's. Its clock runs only while it is blocked.
func (f *flight) Read(b []byte) (int, error) {
	if f.stall > 0 {
		f.start(f.stall)
	}
	n, err := f.resp.Read(b)
	if f.stall > 0 {
		if limit, expired := f.stop(); expired && err != nil && err != io.EOF {
			err = f.late(limit)
		}
	}
	if err != nil {
		f.release()
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

// CloseWrite is what ReverseProxy calls when the other side has finished.
func (d *duplex) CloseWrite() error {
	if c, ok := d.w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func eventStream(h http.Header) bool {
	const name = "text/event-stream"
	v := h.Get("Content-Type")
	return len(v) >= len(name) && strings.EqualFold(v[:len(name)], name) && (len(v) == len(name) || v[len(name)] == ';' || v[len(name)] == ' ')
}
