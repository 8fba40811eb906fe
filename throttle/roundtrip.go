package throttle

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/trip"
)

// passage is one request on its way through a Transport, in one allocation.
type passage struct {
	t      *Transport
	tr     *trip.Trip
	record *record
	leave  func() // releases the partition's record; nil: none
	ask    ask
	inside bool   // counted as entered
	permit permit // under the engine's lock
	shared *fleetGrant
	room   [6]draw
	ctx    context.Context
	r      *http.Request // the attempt
	answer *http.Response
	body   answerBody
	sent   time.Time // handed to the base
}

// RoundTrip waits until every budget that r draws on has room and sends it. A
// request that cannot go in time ends at once with an [*Error]. The response is
// the base's own.
func (t *Transport) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	if r.URL == nil || r.URL.Host == "" {
		return t.base.RoundTrip(r) // it says best what is missing
	}
	owed := r // whose body is still to be closed
	defer func() {
		if owed != nil {
			trip.CloseBody(owed)
		}
	}()
	r, tr, made := trip.Begin(r, trip.Throttle, t.hosts)
	if made {
		defer func() { err = tr.End(err) }()
	}
	for {
		p := &passage{t: t, tr: tr}
		defer p.end()
		if err := p.enter(r); err != nil {
			return nil, err
		}
		owed = nil
		resp, err := p.send()
		y, ok := err.(trip.Yield)
		if !ok {
			return resp, err
		}
		owed = r
		done, err := y.Wait(r) // for the circuit, holding neither budget nor a place
		if err != nil {
			return nil, err
		}
		defer done()
	}
}

// enter finds out what r draws on and waits for it.
func (p *passage) enter(r *http.Request) error {
	t, ctx := p.t, r.Context()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	home, err := p.prepare(r)
	if err != nil {
		return err
	}
	patience := p.patience(r)
	t.engine.mu.Lock()
	now := t.engine.now()
	p.resolve(now, r, home)
	p.record.entered++
	p.ask.learn.enter(1)
	p.inside = true
	draws, at, waited, err := t.engine.takeLocked(now, &p.ask, p.room[:0], &patience)
	p.tr.Waited += waited
	if err == nil {
		p.permit = permit{draws: draws, at: at, held: true}
		if t.fleet != nil {
			err = p.share(ctx, &patience, waited)
		}
	}
	if err != nil {
		return err
	}
	p.ctx, p.r, p.tr.Grant = ctx, r, p
	if p.sent = t.engine.epoch.Add(time.Duration(now)); waited > 0 || t.fleet != nil {
		p.sent = time.Now()
	}
	return nil
}

// prepare fills in p.ask as far as the user's functions say, so no lock is held,
// and returns the host's record.
func (p *passage) prepare(r *http.Request) (*record, error) {
	t, q, ctx := p.t, &p.ask, r.Context()
	host := p.tr.Entry.Key
	if p.tr.Entry.Overflow {
		host = hostOf(r)
	}
	home := t.of(p.tr.Entry, host)
	p.record = home
	if t.config.Partition != nil {
		if part := t.config.Partition(r); part != "" {
			p.record, p.leave = t.partition(host, part)
			q.host = &home.scope
		}
	}
	q.scope, q.seq, q.held = &p.record.scope, p.tr.Order, true
	q.priority = priorityFrom(ctx)
	if t.config.Lane != nil {
		q.lane = t.config.Lane(r)
	}
	cost, given := costFrom(ctx)
	if !given && t.config.Cost != nil {
		cost = t.config.Cost(r)
	}
	if q.cost = cost; cost != nil {
		if err := cost.check(); err != nil {
			return nil, err
		}
	}
	return home, nil
}

// resolve finds the routes that r matches and what is known of its kind. The
// engine's lock is held.
func (p *passage) resolve(now instant, r *http.Request, home *record) {
	p.record.renew(now)
	p.ask.r = r
	route := p.ask.match(&p.record.routes)
	p.ask.learn = p.t.kindOf(now, &p.ask, &home.scope, route, r)
}

// patience is how long r may wait.
func (p *passage) patience(r *http.Request) patience {
	full := maxWaitFrom(r.Context(), p.t.limits.maxWait)
	//lint:ignore SA1019 http.Client with a Timeout still sets it
	w := patience{ctx: r.Context(), cancel: r.Cancel, most: full, full: full, queue: p.t.limits.maxQueue, onWait: p.t.config.OnWait}
	switch {
	case p.tr.Hedge:
		w.most = -1
	case full > 0:
		w.most = max(0, full-p.tr.Waited)
	}
	if p.tr.Caller != nil {
		w.hook = p.tr.Caller
	}
	return w
}

// send hands the attempt to the base and sees to it that what was granted is
// accounted for, however that ends.
func (p *passage) send() (*http.Response, error) {
	t := p.t
	if t.innermost {
		p.tr.MarkSent()
	}
	done := false
	var resp *http.Response
	defer func() {
		if done {
			return
		}
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		p.finish(cancelled) // a panic or Goexit, of the base or a hook: it may have been sent
	}()
	p.tr.At(trip.Throttle)
	p.tr.Yields, p.tr.Peek = true, t.peek
	resp, err := t.base.RoundTrip(p.r)
	p.tr.Yields = false
	if err == nil && resp == nil {
		err = errNeither
	}
	if err != nil {
		done = true
		p.finish(p.lost(err))
		return nil, err
	}
	holds := t.hear(p, resp)
	if t.fleet != nil {
		p.tellFleet(resp)
	}
	p.watch(resp, holds)
	p.answer = resp
	done = true
	return resp, nil
}

// finish ends a passage without an answer.
func (p *passage) finish(end ending) {
	e := p.t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if !p.left() { // a hook panicked after the answer
		e.free(now, &p.permit)
		return
	}
	p.learn(now, end, 0, headers.Signal{})
	if end == unsent {
		p.shared.cancel()
		p.ask.counts().more().refunded++
		e.back(now, &p.permit)
		p.again(now)
		return
	}
	p.ask.counts().retry(p.tr.After, 1)
	e.answered(now, &p.permit)
	e.free(now, &p.permit)
	p.again(now)
}

// left notes that p neither waits nor awaits an answer any more, if it did.
// The engine's lock is held.
func (p *passage) left() bool {
	was := p.inside
	if was {
		p.record.entered--
		p.ask.learn.enter(-1)
		p.inside = false
	}
	return was
}

// end lets go of the partition's record. What is still in flight keeps it from
// being evicted.
func (p *passage) end() {
	if p.inside { // refused, or a hook panicked
		p.t.engine.mu.Lock()
		p.left()
		p.t.engine.mu.Unlock()
	}
	if p.leave != nil {
		p.leave()
	}
}

// Settle says what the request that resp answers really cost: the difference
// to what was reserved is charged, or goes back. Units that actual does not name
// stay as they were, a negative value counts as zero. Of several calls only the
// first counts. It is to be called before the body is closed; for a response
// that no Transport of this package returned it is an error.
func Settle(resp *http.Response, actual Cost) error {
	if resp == nil || resp.Request == nil {
		return errNoGrant
	}
	for tr := trip.From(resp.Request.Context()); tr != nil; tr = trip.From(tr.Caller) {
		if p, ok := tr.Grant.(*passage); ok && p.answer == resp {
			return p.settle(actual)
		}
	}
	return errNoGrant
}
