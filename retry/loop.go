package retry

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// loop is one request on its way through the attempts. It lives on the stack
// of RoundTrip.
type loop struct {
	t    *Transport
	tr   *trip.Trip
	h    *host
	c    *settings
	name string // canonical host
	ctx  context.Context

	r           *http.Request  // what is sent next
	body        *replay        // nil: no body, or GetBody
	most        int            // attempts
	limits      *trip.Timeouts // of each attempt
	safe        bool           // may be processed twice
	backoff     backoff.BackOff
	held        *held // the last answer that was followed by another attempt
	tried       []Tried
	made        int            // attempts that were not refused
	counted     int            // of these, the ones that count against most
	cause       Outcome        // of the last attempt, if this one is a retry
	retries     int            // that were not free
	free        int            // repeats in a row that were, without waiting
	waited      time.Duration  // for budget, when the last repeat was free
	paid        bool           // this attempt was paid from the allowance
	once        [outcomes]bool // outcomes that may not be a reason again
	replayError error          // of GetBody
	hedged, won bool           // of this attempt
	floor       time.Duration  // the server's wait, said in an answer that was dropped
	closeNext   bool           // r has a body that nobody was given yet
	open        *http.Response // that is neither returned nor held yet
	unprepared  error          // of Prepare
}

// prepare makes what the attempts share out of the caller's request.
func (l *loop) prepare() {
	r := l.r
	l.most, l.closeNext = l.c.MaxAttempts, r.Body != nil
	l.limits = l.c.limits
	if o := overrideOf(l.ctx); o != nil {
		if o.MaxAttempts != 0 {
			l.most = max(o.MaxAttempts, 1)
		}
		l.limits = trip.NewTimeouts(cmp.Or(o.AttemptTimeout, l.c.AttemptTimeout), cmp.Or(o.StallTimeout, l.c.StallTimeout))
	}
	l.tr.Bound(l.limits)
	if l.c.IdempotencyKey != nil {
		l.addKey()
	}
	l.safe = idempotent(l.r)
	if l.most > 1 {
		if l.body = newReplay(r, l.c.BufferBody); l.body != nil {
			l.r = withBody(l.r, l.body.next())
		}
	}
}

// run makes attempts until one of them is the last.
func (l *loop) run() (*http.Response, error) {
	defer l.finish()
	l.prepare()
	resp, err := l.attempt()
	return l.follow(resp, err)
}

// resume is run after a first attempt.
func (l *loop) resume(resp *http.Response, err error) (*http.Response, error) {
	defer l.finish()
	l.open = resp
	l.prepare()
	l.closeNext = false
	return l.follow(resp, err)
}

// follow makes more attempts until one of them is the last. resp and err are
// what the first brought.
func (l *loop) follow(resp *http.Response, err error) (*http.Response, error) {
	for ; ; resp, err = l.attempt() {
		l.open = resp
		if l.unprepared != nil {
			return l.end(nil, l.unprepared, true)
		}
		o, sig := l.judge(resp, err)
		l.settle(o)
		p := l.plan(o, sig, resp, err)
		l.tell(o, resp, err, p)
		if p.reason != Again && p.reason != Queued {
			return l.over(o, p, resp, err)
		}
		l.hold(resp)
		l.open = nil
		l.remember(o, resp, err)
		if !l.sleep(p.sleep) {
			return l.cancelled()
		}
	}
}

// finish ends what must not outlive the request, also when a hook panics.
func (l *loop) finish() {
	if l.closeNext {
		trip.CloseBody(l.r)
	}
	if l.open != nil {
		l.open.Body.Close()
	}
	if l.body != nil {
		l.body.finish()
	}
}

// attempt sends l.r once, with a hedge beside it if there may be one.
func (l *loop) attempt() (resp *http.Response, err error) {
	if l.c.Prepare != nil {
		if l.unprepared = l.ready(); l.unprepared != nil {
			return nil, l.unprepared
		}
	}
	l.tr.Next()
	l.closeNext, l.hedged, l.won, l.floor = false, false, false, 0
	if l.c.Hedge.on() && l.tr.Number == 1 && l.mayHedge() {
		return l.race()
	}
	return l.t.onward.Send(l.r, l.tr)
}

// served reports a good answer.
func served(resp *http.Response, tr *trip.Trip) bool {
	return resp != nil && resp.StatusCode < 400 && !tr.Throttled
}

// judge classifies the outcome. Headers are parsed only if the status is not
// good or the throttle saw something.
func (l *loop) judge(resp *http.Response, err error) (Outcome, headers.Signal) {
	switch {
	case served(resp, l.tr):
		return Answered, headers.Signal{}
	case resp != nil:
		return ofAnswer(resp, l.tr)
	}
	switch {
	case notsent.Refused(err) != notsent.Nobody:
		return Refused, headers.Signal{}
	case l.done():
		return CallerDone, headers.Signal{}
	case permanent(l.ctx, err):
		return Permanent, headers.Signal{}
	case l.tr.Unprocessed:
		return NotProcessed, headers.Signal{}
	case l.tr.Cause() == trip.AttemptTimeout:
		return TimedOut, headers.Signal{}
	}
	return Broken, headers.Signal{}
}

// ofAnswer is what an answer means: as a throttle below has read it, else by its
// status and headers.
func ofAnswer(resp *http.Response, tr *trip.Trip) (Outcome, headers.Signal) {
	o, said := ofStatus(resp.StatusCode), tr.Heard(resp)
	if said == nil {
		said = &trip.Said{Signal: headers.Parse(resp, time.Now())}
	}
	switch {
	case said.Ruled && said.Throttled, o == Answered && (said.Throttled || tr.Throttled), o == Unavailable && coded(said):
		o = Throttled
	case said.Ruled && o == Throttled:
		o = Answered
	}
	return o, said.Signal
}

// coded reports whether a code in a 503 names a quota, as S3's SlowDown does. Then the request
// was not executed. A 503 that only states that nothing is left may be the end of the last
// request of a window.
func coded(said *trip.Said) bool {
	return said.Throttled && said.Kind == headers.Quota && !said.Guess &&
		!slices.ContainsFunc(said.Limits, func(l headers.Limit) bool { return l.Exhausted() })
}

// done reports that the caller does not want an answer any more.
func (l *loop) done() bool { return l.gone() != nil }

// gone is why the caller does not want an answer any more, or nil. http.Client
// closes Cancel at its timeout, which is the context's deadline as well.
func (l *loop) gone() error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	select {
	case <-l.r.Cancel: //lint:ignore SA1019 old callers still set it
	default:
		return nil
	}
	if d, ok := l.ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// settle counts an attempt. One that was not made, because a layer below refused
// it or its caller left in a queue there, is paid back instead.
func (l *loop) settle(o Outcome) {
	if o == Refused || o == CallerDone && l.t.link.Has[trip.Wire] && l.tr.OnWire().IsZero() {
		l.payBack()
		return
	}
	l.made++
	l.counted++
	l.h.attempts.Add(1)
	l.h.timed(l.tr)
	if l.made > 1 {
		l.t.count.retries[l.cause].Add(1)
		l.h.count.retries[l.cause].Add(1)
	}
}

// tell calls the hook.
func (l *loop) tell(o Outcome, resp *http.Response, err error, p plan) {
	if l.c.OnAttempt == nil {
		return
	}
	a := Attempt{
		Ctx: l.tr.Caller, Host: l.name, Method: l.r.Method, Number: int(l.tr.Number), Hedged: l.hedged, HedgeWon: l.won,
		Outcome: o, Err: err, Response: resp, Reason: p.reason, Delay: p.sleep, DelayBy: p.delayBy, Waited: l.tr.Waited(),
	}
	if resp != nil {
		a.Status = resp.StatusCode
	}
	if !l.tr.OnWire().IsZero() {
		a.Took = max(1, time.Since(l.tr.OnWire()))
	}
	l.c.OnAttempt(a)
}

// sleep waits and reports whether the caller still wants an answer. The
// context is asked again at the end because both may have been ready.
func (l *loop) sleep(d time.Duration) bool {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.ctx.Done():
		case <-l.r.Cancel: //lint:ignore SA1019 old callers still set it
		}
	}
	return !l.done()
}

// last returns what the request ends with.
func (l *loop) last(o Outcome, p plan, resp *http.Response, err error) (*http.Response, error) {
	switch {
	case resp != nil && p.err != nil: // Check's
		resp.Body.Close()
		return nil, p.err
	case resp != nil:
		return resp, nil
	case p.err != nil:
		return nil, p.err
	case l.inHand() && (l.safe || !l.perhaps(err)):
		return l.held.response(), nil
	case len(l.tried) == 0 && (p.reason == Final || p.reason == Unsafe):
		return nil, err
	}
	return nil, l.failure(o, p, err)
}

// inHand reports whether there is an earlier answer that may be returned. A caller who
// cancelled wants none; one whose deadline passed may learn from it.
func (l *loop) inHand() bool {
	return l.held != nil && l.held.whole && !errors.Is(l.gone(), context.Canceled)
}

// failure is the error of a request that has no response to return.
func (l *loop) failure(o Outcome, p plan, err error) error {
	e := &Error{Host: l.name, Attempts: l.made, Reason: p.reason, Err: err, refusal: p.refusal, ended: l.gone(), cause: context.Cause(l.ctx), Tried: l.tried}
	if err != nil {
		e.Tried = append(e.Tried, Tried{Outcome: o, Err: err})
	}
	switch {
	case l.replayError != nil:
		e.Err = l.replayError
	case o == Refused:
		e.Reason = Blocked
	case o == CallerDone:
		e.Reason = Ended
	case p.reason == NoTime:
		e.ended = context.DeadlineExceeded
	}
	if l.tr.Sent() {
		e.Err = notsent.Deny(e.Err)
	}
	return e
}

// cancelled is the end of a request whose caller left during a delay.
func (l *loop) cancelled() (*http.Response, error) {
	l.payBack()
	if l.inHand() {
		return l.held.response(), nil
	}
	e := &Error{Host: l.name, Attempts: l.made, Reason: Ended, ended: l.gone(), cause: context.Cause(l.ctx), Tried: l.tried}
	e.Err = l.tried[len(l.tried)-1].Err
	return nil, e
}
