package retry

import (
	"context"
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
	r       http.Request // what the base gets
	stall   time.Duration
	cancel  context.CancelCauseFunc
	body    *upload
	unwatch func() bool
	timer   *time.Timer
	resp    io.ReadCloser
	seen    evidence

	mu      sync.Mutex
	until   time.Time     // when the clock strikes; zero: it is stopped
	limit   time.Duration // that it was set to
	expired bool
	over    sync.Once
}

// start sets the clock; 0 is none.
func (f *flight) start(limit time.Duration, now time.Time) {
	if limit == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until, f.limit = now.Add(limit), limit
	if f.timer == nil {
		f.timer = time.AfterFunc(limit, f.strike)
	} else {
		f.timer.Reset(limit)
	}
}

// stop stops the clock and reports whether it has struck.
func (f *flight) stop() (limit time.Duration, expired bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
	if f.timer != nil {
		f.timer.Stop()
	}
	return f.limit, f.expired
}

// strike ends the attempt, unless the timer was set anew or stopped just as
// it fired.
func (f *flight) strike() {
	f.mu.Lock()
	now := !f.until.IsZero() && !time.Now().Before(f.until)
	f.expired = f.expired || now
	var err error
	if now { // else the body may be set at this moment
		err = f.late(f.limit)
	}
	f.mu.Unlock()
	if now {
		f.cancel(err)
	}
}

// late is the error of a clock that struck.
func (f *flight) late(limit time.Duration) *TimeoutError {
	return &TimeoutError{Host: hosts.Key(&f.r), Limit: limit, Body: f.resp != nil}
}

// release frees the context. It is called when the attempt is over: failed,
// or its body read to the end or closed.
func (f *flight) release(cause error) {
	f.over.Do(func() {
		f.stop()
		if f.unwatch != nil && f.body.done() {
			f.unwatch()
		}
		f.cancel(cause)
	})
}

// guard puts the flight in the place of the response's body.
func (f *flight) guard(resp *http.Response) {
	switch {
	case resp.Body == http.NoBody:
		f.release(nil)
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
		f.start(f.stall, time.Now())
	}
	n, err := f.resp.Read(b)
	if f.stall > 0 {
		if limit, expired := f.stop(); expired && err != nil && err != io.EOF {
			err = f.late(limit)
		}
	}
	if err != nil {
		f.release(nil)
	}
	return n, err
}

// Close is the response body's.
func (f *flight) Close() error {
	err := f.resp.Close()
	f.release(nil)
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
