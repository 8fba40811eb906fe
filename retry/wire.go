package retry

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/trip"
)

// Wire returns the innermost layer. AttemptTimeout bounds the time of an attempt from
// dialling to the headers, or from one interim answer to the next, and StallTimeout
// that of a blocked Read of the body; nothing else of c is used. Wire also closes a
// request body whose Read would outlive the attempt, and notes what is certain about
// what was sent. It stands below all layers that wait, so that waiting is not taken for
// slowness. nil base: http.DefaultTransport.
//
// New puts it in by itself unless there is one below already.
//
// Timers that are not needed any more are kept for later attempts, as connections
// are, and CloseIdleConnections stops them. A timer that is not stopped fires
// once, within the longer of the two timeouts, and then does nothing.
func Wire(base http.RoundTripper, c Config) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	w := &wire{base: base, link: trip.Under(base, trip.Wire), clocks: newClocks()}
	w.onward = trip.NewOnward(base, trip.Wire, w.link.Hosts)
	_, w.clocks.direct = base.(*http.Transport)
	w.clocks.looks.Store(w.clocks.direct)
	w.attempt, w.stall = c.timeouts()
	w.ahead, w.steady = w.link.Hosts.Epoch.Sub(w.clocks.epoch), trip.Monotonic(w.clocks.epoch)
	return w
}

type wire struct {
	base           http.RoundTripper
	link           trip.Link
	attempt, stall time.Duration
	onward         trip.Onward
	clocks         *clocks
	ahead          time.Duration // of trips' times: what to add to one to count from clocks.epoch
	steady         bool          // made outside of testing/synctest bubbles, whose timers nobody else may use
}

func (w *wire) Link() trip.Link { return w.link.With(trip.Wire).At(w, w) }

func (w *wire) Outlook(r *http.Request) (time.Duration, error) { return trip.Outlook(w.base, r) }

// Ahead is Outlook for the layer above.
func (w *wire) Ahead(r *http.Request, t *trip.Trip) (time.Duration, error) {
	return w.onward.Outlook(r, t)
}

func (w *wire) CloseIdleConnections() {
	w.clocks.close()
	trip.CloseIdle(w.base)
}

func (w *wire) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	t, made := w.onward.Begin(r)
	if made {
		defer func() { err = t.End(err) }()
	}
	return w.Enter(r, t)
}

// limits are the two timeouts for this attempt; 0 is none.
func (w *wire) limits(r *http.Request, t *trip.Trip) (attempt, stall time.Duration) {
	attempt, stall = w.attempt, w.stall
	if a, s := t.Timeouts(); a != 0 { // there is a retry layer, which has looked for an Override
		attempt, stall = a, s
	} else if o := overrideOf(r.Context()); o != nil {
		attempt = cmp.Or(o.AttemptTimeout, attempt)
		stall = cmp.Or(o.StallTimeout, stall)
	}
	return max(attempt, 0), max(stall, 0)
}

// Enter is RoundTrip for the layer above.
func (w *wire) Enter(r *http.Request, t *trip.Trip) (*http.Response, error) {
	f, sent := w.depart(r, t)
	returned := false
	defer func() {
		if !returned && f != nil { // the base panicked or ended the goroutine
			f.release()
		}
	}()
	resp, err := w.base.RoundTrip(sent)
	returned = true
	if resp, err = proper(sent, resp, err); f != nil {
		return w.land(f, t, r, resp, err)
	}
	if err == nil { // there is nothing else to say
		t.MarkSent()
		return resp, nil
	}
	w.note(t, sent, err, nil, evidence{})
	return nil, err
}

// depart makes the request that the base gets, and starts its flight; nil: nobody need
// watch it.
func (w *wire) depart(r *http.Request, t *trip.Trip) (f *flight, sent *http.Request) {
	attempt, stall := w.limits(r, t)
	ctx := r.Context()
	body := uploadOf(r, w.clocks, attempt > 0)
	if attempt == 0 && stall == 0 && body == nil && !needsEvidence(r) {
		if !t.Worn(trip.Wire) {
			r = t.Dress(r)
		}
		t.Depart()
		return nil, r
	}
	if w.clocks.looks.Load() {
		both := new(tracked)
		f = &both.flight
		f.ctx.shown = &both.shown
	} else {
		f = new(flight)
	}
	f.stall = stall
	over := ctx
	if !t.Worn(trip.Wire) {
		over = t.Over(ctx)
	}
	f.ctx.Context = over
	f.ctx.clocks, f.ctx.full = w.clocks, needsEvidence(r)
	f.r = t.Copy(r, &f.ctx)
	if body != nil {
		f.carry(body)
	}
	left := t.Depart() + w.ahead
	if f.ctx.again = w.steady && t.Steady(); !f.ctx.again {
		left = w.clocks.now()
	}
	if w.clocks.direct { // net/http asks for a connection a moment later
		way := f.ctx.shown
		way.lines, way.since, way.free = linesOf(t.Entry), left, left
	}
	if attempt > 0 {
		f.set(left, attempt)
	}
	return f, f.r
}

// land takes in what the base returned for the attempt.
func (w *wire) land(f *flight, t *trip.Trip, r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	f.ctx.answered = err == nil
	var e evidence
	if limit, expired := f.halt(err == nil && resp.Body == http.NoBody, &e); expired {
		if err == nil { // the headers came as the clock struck: the body is dead
			resp.Body.Close()
		}
		t.SetCause(trip.AttemptTimeout)
		late := f.late(limit)
		late.at = w.note(t, r, cut{late, err}, f, e)
		f.release()
		return nil, late
	}
	if err != nil {
		w.note(t, r, err, f, e)
		f.release()
		if ctx := r.Context(); f.body != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = context.Cause(ctx) // not what it did to the body
		}
		return nil, err
	}
	if e.queued > 0 {
		t.Queued(e.queued, true)
	}
	t.MarkSent()
	f.guard(resp)
	return resp, nil
}

var errNothing = errors.New("retry: the base returned neither a response nor an error")

// proper makes of what the base returned for r what a RoundTripper may return.
func proper(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	switch {
	case resp == nil && err == nil:
		return nil, errNothing
	case resp == nil:
		return nil, err
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	if resp.Request == nil {
		resp.Request = r
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// cut is a timeout together with what the base said about it.
type cut struct {
	error
	base error
}

func (c cut) Unwrap() error { return c.base }

// note writes down what e and the error by which the attempt that r was ended prove, and returns
// what it was waiting for. f is nil if nobody watched it.
func (w *wire) note(t *trip.Trip, r *http.Request, err error, f *flight, e evidence) (at trip.Stage) {
	expired := t.Cause() == trip.AttemptTimeout
	left := t.OnWire()
	if e.queued > 0 {
		t.Queued(e.queued, expired || e.got || e.phase == dialling)
	}
	ctx := r.Context()
	if ctx.Err() != nil {
		t.SetCause(trip.CallerDone)
	}
	if f != nil {
		at = f.stage(e, expired)
		if t.Stage = at; f.frozen(ctx, left) {
			t.Stage = trip.Frozen
		}
	}
	unprocessed, unsent := weigh(err, e, t.Cause() != trip.NoCause || gaveUp(r))
	t.Unprocessed = unprocessed
	if !unsent {
		t.MarkSent()
	}
	return at
}

// gaveUp reports whether a caller of the old kind has given up.
func gaveUp(r *http.Request) bool {
	select {
	case <-r.Cancel: //lint:ignore SA1019 old callers still set it
		return true
	default:
		return false
	}
}
