package throttle

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// RoundTrip waits until every budget that applies to r has room, and sends it. A
// request that cannot be sent in time ends at once with an [*Error]. The response
// is the base's own.
func (t *Transport) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	if r.URL == nil || r.URL.Host == "" {
		return t.base.RoundTrip(r) // it says best what is missing
	}
	tr, made := t.onward.Begin(r)
	if made {
		defer func() { err = tr.End(err) }()
	}
	return (*room)(t).Enter(r, tr)
}

// Enter is RoundTrip together with the request's trip.
func (o *room) Enter(r *http.Request, tr *trip.Trip) (*http.Response, error) {
	t := (*Transport)(o)
	if r.URL == nil || r.URL.Host == "" {
		return t.onward.Send(r, tr)
	}
	p := attemptIn(tr)
	p.tr, p.r = tr, r
	defer p.end()
	if err := p.enter(t); err != nil {
		return nil, err
	}
	p.handOver(t)
	resp, err := t.onward.Send(r, tr)
	if resp, err = p.land(t, resp, err); err == nil {
		return resp, nil
	}
	if y, ok := err.(trip.Yield); ok {
		p.end()
		return t.later(y, r, tr)
	}
	return nil, err
}

// later makes an attempt anew that a Meter put off: it waits for the circuit,
// holding neither budget nor a place. r's body is still open.
func (t *Transport) later(y trip.Yield, r *http.Request, tr *trip.Trip) (*http.Response, error) {
	owed := r // whose body is still to be closed
	defer func() {
		if owed != nil {
			trip.CloseBody(owed)
		}
	}()
	done, err := y.Wait(r, tr)
	if err != nil {
		return nil, err
	}
	defer done()
	owed = nil
	return (*room)(t).Enter(r, tr)
}

// handOver prepares the attempt for the base.
func (p *attempt) handOver(t *Transport) {
	if t.innermost {
		p.tr.MarkSent()
	}
	p.permit.stage = sending
	p.tr.Yields = true
	p.tr.Keep(nil, nil)
}

// land takes in how the attempt ended. It returns what the base did.
func (p *attempt) land(t *Transport, resp *http.Response, err error) (*http.Response, error) {
	p.tr.Yields = false
	if err == nil && resp == nil {
		err = errNeither
	}
	if err != nil {
		p.permit.stage = accounted
		p.finish(p.lost(err))
		return nil, err
	}
	p.answer = resp
	p.shared().Answered()
	holds := t.hear(p, resp)
	if t.fleet != nil {
		p.leaveWindow()
	}
	p.watch(resp, holds || p.shared().Flies())
	p.permit.stage = accounted
	return resp, nil
}

// finish ends an attempt without an answer.
func (p *attempt) finish(end ending) {
	if end != unsent {
		p.shared().Answered()
		p.shared().Done()
	}
	e := p.record.lock()
	defer e.Unlock()
	now := e.Now()
	if !p.uncount() { // a hook panicked after the answer
		e.Free(now, &p.permit.Permit)
		return
	}
	p.heed(now, p.learn(now, end, 0, &headers.Signal{}))
	if end == unsent {
		p.shared().Cancel()
		p.counts().more().refunded++
		p.permit.vacate(now, p.endpoint)
		e.Return(now, &p.permit.Permit)
		p.again(now)
		return
	}
	p.counts().retry(p.tr.After(), 1)
	p.permit.vacate(now, p.endpoint)
	e.Lost(now, &p.permit.Permit)
	p.again(now)
}

// lost is how an attempt that brought no answer ended.
func (p *attempt) lost(err error) ending {
	ctx := p.r.Context()
	switch {
	case notsent.Refused(err) == notsent.Meter && p.refusedHere(err):
		return unsent
	case p.tr.Cause() == trip.LostHedge, p.tr.Cause() == trip.CallerDone, p.tr.Stage == trip.Frozen:
		return cancelled
	case ctx.Err() == nil || p.tr.Cause() == trip.AttemptTimeout:
		return failed
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(p.record.t.domains.Epoch)-time.Duration(p.permit.Granted) >= time.Second:
		return failed // the host had time enough
	}
	return cancelled
}

// refusedHere reports whether a refusal came from this chain's own Meter. One
// of another chain, which is the base, may come after something was sent.
func (p *attempt) refusedHere(err error) bool {
	return p.record.t.link.Has[trip.Meter] && p.tr.OnWire().IsZero() || errors.Is(err, notsent.Err)
}

// uncount undoes count: p neither waits nor awaits an answer any more. It reports whether
// it did. The lock is held.
func (p *attempt) uncount() bool {
	was := p.permit.inside
	if was {
		p.record.entered--
		p.endpoint.enter(-1)
		p.permit.inside = false
	}
	return was
}

// end sees to it that whatever p holds is given back, however it ended, also by
// a panic. The second time it does nothing. What is still in flight keeps the partition's
// record from being evicted.
func (p *attempt) end() {
	switch p.permit.stage {
	case entering: // refused, or a hook panicked
		trip.CloseBody(p.r)
	case sending:
		if p.answer != nil && p.answer.Body != nil {
			p.answer.Body.Close()
		}
		p.finish(cancelled) // a panic or Goexit, of the base or a hook: it may have been sent
	}
	if p.permit.inside {
		e := p.record.lock()
		p.uncount()
		e.Unlock()
	}
	if p.few != nil && p.few.part != nil {
		p.few.part.Release()
		p.few.part = nil
	}
}

// Settle says what the request that resp answers really cost: the difference to
// what was reserved is charged, or goes back. Units that actual does not name stay
// as they were, a negative value counts as zero. Of several calls only the first
// counts. It is to be called before the body is closed; for a response that no
// Transport of this package returned it is an error. If several Transports stand
// above one another, it reaches all of them.
func Settle(resp *http.Response, actual Cost) error {
	if resp == nil || resp.Request == nil {
		return errNoGrant
	}
	err := errNoGrant
	for tr := trip.From(resp.Request.Context()); tr != nil; tr = trip.From(tr.Caller) {
		if p, ok := tr.Grant.(*attempt); ok && p.answer == resp {
			if e := p.settle(actual); e == nil || err == errNoGrant {
				err = e
			}
		}
	}
	return err
}

// Outlook is how long r would wait here and below if it were sent now, and the
// refusal it would meet.
func (t *Transport) Outlook(r *http.Request) (time.Duration, error) {
	tr := trip.From(r.Context())
	if tr == nil || tr.Table() != t.hosts {
		entry := t.hosts.Acquire(hostOf(r), time.Now())
		defer entry.Release()
		tr = &trip.Trip{Request: &trip.Request{Entry: entry, Caller: r.Context()}}
	}
	return t.ahead(r, tr)
}

// ahead is Outlook within tr.
func (t *Transport) ahead(r *http.Request, tr *trip.Trip) (time.Duration, error) {
	below, err := t.onward.Outlook(r, tr)
	if err != nil || r.URL == nil || r.URL.Host == "" {
		return below, err
	}
	wait, err := t.outlook(r, tr)
	return max(wait, below), err
}

func (t *Transport) outlook(r *http.Request, tr *trip.Trip) (time.Duration, error) {
	p, q := &attempt{tr: tr, r: r}, ask{r: r, Request: queue.Request{Held: true}}
	p.permit.stage = accounted
	defer p.end()
	home, err := p.prepare(t, &q)
	if err != nil {
		return 0, err
	}
	p.rank(r.Context(), &q)
	patience := p.patience(r.Context())
	e, _, now := p.record.current()
	defer e.Unlock()
	p.resolve(now, &q, home)
	patience.Trip = p.endpoint.slow.Usual()
	needs := q.scope.needs(p.room[:0], &q)
	if a := queue.NeverFits(now, needs); a != nil {
		return 0, q.refused(&queue.Refusal{Reason: queue.Unfit, Account: a})
	}
	shared := p.fleetWait(now, &q, needs)
	q.By = &q
	at, a := queue.Estimate(now, &q.Request, needs)
	if a == nil || queue.Spared(now, &q.Request, needs, &patience.Patience) {
		return shared, nil
	}
	if r := queue.TooLate(now, at, a, &q.Request, needs, &patience.Patience); r != nil {
		return r.Wait, q.refused(r)
	}
	if at == never {
		at = now
	}
	return max(shared, at.Until(now)), nil
}

// chain tells the layer above about this one; an alias, so that the methods
// which it lends are no part of the documented API.
type chain = trip.Chain

// room is a Transport as the layer of weir above it knows it.
type room Transport

// Ahead is Outlook together with the request's trip.
func (r *room) Ahead(req *http.Request, tr *trip.Trip) (time.Duration, error) {
	return (*Transport)(r).ahead(req, tr)
}
