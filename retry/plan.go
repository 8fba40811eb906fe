package retry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/trip"
)

// plan is what follows an attempt.
type plan struct {
	reason  Reason        // Again or Queued: another one
	sleep   time.Duration // before it
	delayBy DelayBy
	err     error // to return instead of the attempt's outcome
	refusal error // of a layer below, if Reason is Blocked
}

// maxFree is how many repeats in a row may be free without having waited: a layer below
// that keeps refusing without a wait must not keep a processor busy.
const maxFree = 10

// plan decides whether another attempt follows and prepares it. The cheapest
// questions are asked first. Nothing is spent, waited for or read until all the
// others are answered.
func (l *loop) plan(o Outcome, sig headers.Signal, resp *http.Response, err error) plan {
	if o == Answered && l.c.Check == nil && !sig.ShouldRetry.Known {
		l.reward()
		return plan{}
	}
	if p, ok := l.worth(o, sig, resp, err); !ok {
		if o == Answered && p.reason != Unsafe && p.err == nil { // nobody asks for a better one
			l.reward()
		}
		return p
	}
	throttled, used := l.tr.Throttled && l.t.link.Has[trip.Throttle], l.counted >= l.most
	switch {
	case l.most == 1:
		return plan{reason: Exhausted}
	case !l.replayable():
		return plan{reason: BodyGone}
	case used && !throttled && !l.t.link.Has[trip.Meter]:
		return plan{reason: Exhausted}
	}
	now := time.Now()
	wait, refusal := l.t.onward.Outlook(l.r, l.tr)
	server := max(l.floor, serverDelay(o, sig))
	free := refusal == nil && (throttled || l.tr.Patience == trip.Patient) && l.believes(wait)
	switch {
	case used && !free && (refusal == nil || !throttled && !l.tr.Probe):
		return plan{reason: Exhausted}
	case errors.Is(refusal, context.DeadlineExceeded):
		return plan{reason: NoTime}
	case refusal != nil:
		return plan{reason: Blocked, refusal: refusal}
	}
	p := plan{reason: Queued, delayBy: Queue}
	if !free || !throttled && server > wait {
		p.sleep, p.delayBy, p.reason = l.delay(resp, server, now)
		if p.reason != Again {
			return plan{reason: p.reason}
		}
	}
	if l.tr.Patience != trip.Impatient && !throttled && wait > p.sleep { // for the circuit: nobody queues there
		p.sleep, p.delayBy = wait, Queue
	}
	// The throttle has refused if the certain part of the wait is too long. For the rest the request queues.
	if deadline, ok := l.ctx.Deadline(); ok && !now.Add(p.sleep).Before(deadline) {
		return plan{reason: NoTime}
	}
	return l.commit(o, p, free, now)
}

// worth asks whether the outcome is one to be retried at all.
func (l *loop) worth(o Outcome, sig headers.Signal, resp *http.Response, err error) (plan, bool) {
	if o == Refused || o == CallerDone {
		return plan{}, false
	}
	v := policy[o].other
	if l.safe {
		v = policy[o].idempotent
	}
	if l.c.Check != nil {
		vote, verr := l.c.Check(l.ctx, resp, asClient(l.r, err))
		switch {
		case !vote && verr != nil:
			return plan{reason: Declined, err: verr}, false
		case !vote:
			return plan{reason: Declined}, false
		case v == never && l.safe && o != Permanent:
			v = again
		case v == never && o != Permanent:
			return plan{reason: Unsafe}, false
		}
	}
	if sig.ShouldRetry.Known && !sig.ShouldRetry.Value {
		return plan{reason: Vetoed}, false
	}
	if sig.ShouldRetry.Known && l.safe {
		v = again
	}
	switch {
	case o == Throttled && (sig.Kind == headers.Ban || sig.Kind == headers.NoAllowance) && !l.tr.Throttled:
		return plan{reason: Vetoed}, false
	case v == never && policy[o].idempotent == again:
		return plan{reason: Unsafe}, false
	case v == never, v == ifAsked, v == once && l.once[o]:
		return plan{}, false
	}
	return plan{}, true
}

// asClient shows an error as http.Client would, because CheckRetry functions expect
// that. It leaves out the URL, whose text they might misread.
func asClient(r *http.Request, err error) error {
	if err == nil {
		return nil
	}
	return &url.Error{Op: r.Method, Err: err}
}

// serverDelay is the delay that the server asked for: its Retry-After, or, if it
// throttled and gave none, the time until the limit that is spent has room again.
func serverDelay(o Outcome, sig headers.Signal) (d time.Duration) {
	if sig.RetryAfter.Known || o != Throttled {
		return sig.RetryAfter.Value
	}
	for _, l := range sig.Limits {
		if l.Remaining.Known && l.Remaining.Value < 1 && l.Reset.Known && l.ResetMeans != headers.Full {
			d = max(d, l.Reset.Value)
		}
	}
	return d
}

// believes reports whether a repeat may be free. A repeat that a throttle below makes
// wait, or that waits for a circuit, costs neither an attempt nor allowance. If a layer
// has announced a wait and then does not wait, it is not believed for long.
func (l *loop) believes(wait time.Duration) bool {
	if wait > 0 || l.tr.Waited() > l.waited {
		l.free = 0
	}
	l.waited = l.tr.Waited()
	l.free++
	return l.free <= maxFree
}

// replayable reports whether the body can be sent again.
func (l *loop) replayable() bool {
	if l.r.Body == nil || l.r.Body == http.NoBody {
		return true
	}
	if l.body != nil {
		return l.body.again()
	}
	return l.r.GetBody != nil
}

// commit spends what the next attempt costs and takes its body.
func (l *loop) commit(o Outcome, p plan, free bool, now time.Time) plan {
	paid := !free && !l.c.Allowance.Disable
	if paid && !l.h.allowance.take(l.c.Allowance.Tokens, now) {
		return plan{reason: NoAllowance}
	}
	if !l.rewind() {
		if paid {
			l.h.allowance.give(cost, now)
		}
		return plan{reason: BodyGone}
	}
	l.paid = paid
	if policy[o].other == once {
		l.once[o] = true
	}
	if free {
		l.counted--
	} else {
		l.retries++
	}
	l.cause = o
	l.tr.Follow(o.String())
	return p
}

// rewind gives the next attempt a body of its own: an earlier one may still
// be read. The request is copied for the same reason.
func (l *loop) rewind() bool {
	if l.r.Body == nil || l.r.Body == http.NoBody {
		return true
	}
	if l.body != nil {
		s := l.body.next()
		if s == nil {
			return false
		}
		l.r, l.closeNext = withBody(l.r, s), true
		return true
	}
	b, err := l.r.GetBody()
	if err != nil {
		l.replayError = err
		return false
	}
	l.r, l.closeNext = copyOf(l.r), true
	l.r.Body = b
	return true
}

func copyOf(r *http.Request) *http.Request {
	c := new(http.Request)
	*c = *r
	return c
}

// withBody returns r with the body s, and with a GetBody if that cannot fail:
// net/http repeats refused HTTP/2 streams only of requests that have one.
func withBody(r *http.Request, s *share) *http.Request {
	c := copyOf(r)
	c.Body = s
	if p := s.p; p.at != nil || 0 < r.ContentLength && r.ContentLength <= p.limit {
		c.GetBody = p.copy
	}
	return c
}
