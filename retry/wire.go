package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/internal/trip"
)

// Wire returns the innermost layer: it bounds an attempt from the wire to the
// headers by AttemptTimeout and a blocked Read of the body by StallTimeout,
// closes a request body whose Read would outlive the attempt, and notes what
// is certain about what was sent. Nothing else of c is used. It stands below
// all that waits, so that waiting is not taken for slowness. nil base:
// http.DefaultTransport.
//
// New puts it in by itself unless there is one below already.
func Wire(base http.RoundTripper, c Config) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	w := &wire{base: base, link: trip.Below(base)}
	w.attempt, w.stall = c.timeouts()
	return w
}

type wire struct {
	base           http.RoundTripper
	link           trip.Link
	attempt, stall time.Duration
}

func (w *wire) Link() trip.Link { return w.link.With(trip.Wire) }

func (w *wire) Outlook(r *http.Request) (time.Duration, error) { return trip.Outlook(w.base, r) }

func (w *wire) CloseIdleConnections() { trip.CloseIdle(w.base) }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	r, t, made := trip.Begin(r, trip.Wire, w.link.Hosts)
	t.At(trip.Wire)
	resp, err := w.send(r, t)
	if made {
		err = t.End(err)
	}
	return resp, err
}

// limits are the two timeouts for this attempt; 0 is none.
func (w *wire) limits(r *http.Request, t *trip.Trip) (attempt, stall time.Duration) {
	attempt, stall = w.attempt, w.stall
	if o := overrideOf(r.Context()); o != nil {
		def2(&attempt, o.AttemptTimeout)
	}
	def2(&attempt, t.AttemptTimeout)
	def2(&stall, t.StallTimeout)
	return max(attempt, 0), max(stall, 0)
}

// def2 sets *p unless v is zero.
func def2(p *time.Duration, v time.Duration) {
	if v != 0 {
		*p = v
	}
}

func (w *wire) send(r *http.Request, t *trip.Trip) (*http.Response, error) {
	attempt, stall := w.limits(r, t)
	ctx := r.Context()
	var e *evidence
	if needsEvidence(r) {
		e = new(evidence)
	}
	body := blockable(r)
	if attempt == 0 && stall == 0 && e == nil && body == nil {
		t.OnWire = time.Now()
		resp, err := w.call(r)
		w.note(t, ctx, err, e)
		return resp, err
	}
	f := &flight{stall: stall, host: t.Entry.Key}
	actx, cancel := context.WithCancelCause(ctx)
	f.cancel = cancel
	if body != nil {
		// HTTP/1 waits for a blocked Read of the body past the end of the
		// context (golang.org/issue/78555).
		f.body = body
		f.unwatch = context.AfterFunc(actx, body.close)
	}
	if e != nil {
		actx = e.watch(actx)
	}
	f.r = *r.WithContext(actx)
	if body != nil {
		f.r.Body = body
	}
	t.OnWire = time.Now()
	f.start(attempt, t.OnWire)
	return w.land(f, t, ctx, e)
}

// land sends the attempt and sees to it until its headers are there.
func (w *wire) land(f *flight, t *trip.Trip, ctx context.Context, e *evidence) (*http.Response, error) {
	resp, err := w.call(&f.r)
	if limit, expired := f.stop(); expired {
		if err == nil { // the headers came as the clock struck: the body is dead
			resp.Body.Close()
		}
		t.SetCause(trip.AttemptTimeout)
		late := &TimeoutError{Host: t.Entry.Key, Limit: limit}
		w.note(t, ctx, cut{late, err}, e)
		f.release(nil)
		return nil, late
	}
	w.note(t, ctx, err, e)
	if err != nil {
		f.release(nil)
		return nil, err
	}
	f.guard(resp)
	return resp, nil
}

var errNothing = errors.New("retry: the base returned neither a response nor an error")

// call makes of what the base returns what a RoundTripper may return.
func (w *wire) call(r *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(r)
	switch {
	case resp == nil && err == nil:
		return nil, errNothing
	case resp != nil && resp.Body == nil:
		resp.Body = http.NoBody
	}
	if err != nil && resp != nil {
		resp.Body.Close()
		resp = nil
	}
	return resp, err
}

// cut is a timeout together with what the base said about it.
type cut struct {
	error
	base error
}

func (c cut) Unwrap() error { return c.base }

// note writes down what the attempt's end proves.
func (w *wire) note(t *trip.Trip, ctx context.Context, err error, e *evidence) {
	if err == nil {
		t.MarkSent()
		return
	}
	if ctx.Err() != nil {
		t.SetCause(trip.CallerDone)
	}
	unprocessed, unsent := weigh(err, e)
	t.Unprocessed = unprocessed
	if !unsent {
		t.MarkSent()
	}
}

// flight is an attempt from the wire to the end of its response body, which
// it stands in for.
type flight struct {
	r       http.Request // what the base gets
	host    string
	stall   time.Duration
	cancel  context.CancelCauseFunc
	body    *upload
	unwatch func() bool
	timer   *time.Timer
	resp    io.ReadCloser

	mu      sync.Mutex
	until   time.Time     // when the clock strikes; zero: it is stopped
	limit   time.Duration // that it was set to
	expired bool
	reading bool
	over    sync.Once
}

// start sets the clock; 0 is none.
func (f *flight) start(limit time.Duration, now time.Time) {
	if limit == 0 {
		return
	}
	f.mu.Lock()
	f.until, f.limit = now.Add(limit), limit
	f.mu.Unlock()
	if f.timer == nil {
		f.timer = time.AfterFunc(limit, f.strike)
	} else {
		f.timer.Reset(limit)
	}
}

// stop stops the clock and reports whether it has struck.
func (f *flight) stop() (limit time.Duration, expired bool) {
	if f.timer == nil {
		return 0, false
	}
	f.mu.Lock()
	f.until = time.Time{}
	limit, expired = f.limit, f.expired
	f.mu.Unlock()
	f.timer.Stop()
	return limit, expired
}

// strike ends the attempt, unless the timer was set anew or stopped just as
// it fired.
func (f *flight) strike() {
	f.mu.Lock()
	now := !f.until.IsZero() && !time.Now().Before(f.until)
	if now {
		f.expired = true
	}
	err := &TimeoutError{Host: f.host, Limit: f.limit, Body: f.reading}
	f.mu.Unlock()
	if now {
		f.cancel(err)
	}
}

// release frees the context. It is called when the attempt is over: failed,
// or its body read to the end or closed.
func (f *flight) release(cause error) {
	f.over.Do(func() {
		if f.timer != nil {
			f.timer.Stop()
		}
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
	case resp.StatusCode == http.StatusSwitchingProtocols:
		if rw, ok := resp.Body.(io.ReadWriteCloser); ok {
			f.stall, f.resp = 0, rw
			resp.Body = &duplex{f, rw}
			return
		}
	}
	if eventStream(resp.Header) {
		f.stall = 0
	}
	f.resp = resp.Body
	resp.Body = f
}

// Read is the response body's. Its clock runs only while it is blocked.
func (f *flight) Read(b []byte) (int, error) {
	if f.stall > 0 {
		f.mu.Lock()
		f.reading = true
		f.mu.Unlock()
		f.start(f.stall, time.Now())
	}
	n, err := f.resp.Read(b)
	if f.stall > 0 {
		if limit, expired := f.stop(); expired && err != nil && err != io.EOF {
			err = &TimeoutError{Host: f.host, Limit: limit, Body: true}
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

// upload is a request body that may be closed while a Read is blocked, more
// than once.
type upload struct {
	io.ReadCloser
	mu     sync.Mutex
	closed bool
}

// blockable returns r's body so guarded, or nil if closing it would not free
// a Read: without a body, or behind an io.NopCloser, as http.NewRequest makes
// them from memory.
func blockable(r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	switch reflect.TypeOf(r.Body) {
	case reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(writerTo{})):
		return nil
	}
	return &upload{ReadCloser: r.Body}
}

// writerTo finds the other type that io.NopCloser returns.
type writerTo struct {
	io.Reader
	io.WriterTo
}

func (u *upload) Close() error {
	u.mu.Lock()
	was := u.closed
	u.closed = true
	u.mu.Unlock()
	if was {
		return nil
	}
	return u.ReadCloser.Close()
}

func (u *upload) close() { u.Close() }

func (u *upload) done() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.closed
}
