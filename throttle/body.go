package throttle

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

var (
	errNoGrant = errors.New("throttle: Settle: the response did not come through a throttle.Transport")
	errSettled = errors.New("throttle: Settle: the response was settled before")
	errClosed  = errors.New("throttle: Settle: the body was closed before")
	errNeither = errors.New("throttle: the base returned neither a response nor an error")
)

// answerBody gives the places in flight back, and counts no more, when the body is
// done: closed, read to its end, failed, or its request's context ended. Exactly once.
type answerBody struct {
	io.ReadCloser
	p    *attempt
	stop func() bool // of the watch on the context
}

// upgraded is an answerBody of a connection that was switched to another
// protocol: it can be written to.
type upgraded struct {
	*answerBody
	w io.Writer
}

func (u *upgraded) Write(b []byte) (int, error) { return u.w.Write(b) }

// CloseWrite closes the writing side alone.
func (u *upgraded) CloseWrite() error { return trip.CloseWrite(u.w) }

func (b *answerBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *answerBody) Close() error {
	defer b.close()
	defer b.done()
	return b.ReadCloser.Close()
}

func (b *answerBody) done() {
	if b.stop != nil {
		b.stop()
	}
	b.p.free()
}

// free gives the places in flight back, once.
func (p *attempt) free() {
	p.shared().Done()
	e := p.record.lock()
	defer e.Unlock()
	if p.permit.read {
		p.permit.read = false
		p.endpoint.bodies--
	}
	e.Free(e.Now(), &p.permit.Permit)
}

// reads reports whether an answer's body has to be counted until its end: a host that
// says that it is overloaded may have a limit of requests at a time, and some count
// them for so long. The lock is held.
func (p *attempt) reads(status int) bool {
	k := p.endpoint
	if k == nil || status >= 400 || k.overload.Quiet() {
		return false
	}
	k.bodies++
	p.permit.read = true
	return true
}

// close notes that the body is closed.
func (b *answerBody) close() {
	e := b.p.record.lock()
	defer e.Unlock()
	b.p.permit.closed = true
}

// places reports whether places in flight are still held. The lock is held.
func (p *attempt) places() bool {
	return slices.ContainsFunc(p.permit.Needs, func(d queue.Need) bool { return d.N != 0 && d.Account.Label.Unit == "" })
}

// watch wraps the body of resp, in place, if something waits for its end.
func (p *attempt) watch(resp *http.Response, holds bool) {
	if !holds {
		return
	}
	b := &answerBody{ReadCloser: resp.Body, p: p}
	if ctx := p.r.Context(); ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, p.free)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if w, ok := resp.Body.(io.Writer); ok {
			resp.Body = &upgraded{b, w}
			return
		}
	}
	resp.Body = b
}

// settle is Settle.
func (p *attempt) settle(actual Cost) error {
	e := p.record.lock()
	defer e.Unlock()
	switch {
	case p.permit.closed:
		return errClosed
	case p.permit.settled:
		return errSettled
	}
	p.permit.settled = true
	e.Settle(e.Now(), &p.permit.Permit, actual)
	p.shared().Settle(actual)
	return nil
}
