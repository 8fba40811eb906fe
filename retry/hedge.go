package retry

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// mayHedge reports whether the first attempt may have another beside it.
func (l *loop) mayHedge() bool {
	if !l.safe || l.body != nil || l.most == 1 || l.r.Header.Get("Upgrade") != "" {
		return false
	}
	if l.tr.Probe || !l.tr.Held().IsZero() { // the circuit is not closed
		return false
	}
	return l.r.Body == nil || l.r.Body == http.NoBody || l.r.GetBody != nil
}

// race makes the first attempt on this goroutine and its hedge, if the time
// comes, on the timer's. It returns when both have ended, so nothing is left
// behind; the loser is cancelled as soon as there is a good answer.
func (l *loop) race() (*http.Response, error) {
	after, ok := l.hedgeAfter()
	if !ok {
		resp, err := l.t.onward.Send(l.r, l.tr)
		l.learn(resp)
		return resp, err
	}
	ctx, cancel := context.WithCancel(l.ctx)
	h := &hedge{t: l.t, first: l.tr, host: l.h, c: l.c, limits: l.limits, r: l.r, cancelFirst: cancel, ended: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(l.ctx)
	timer := time.AfterFunc(after, h.run)
	returned := false
	defer func() {
		if !returned { // the base panicked or ended the goroutine
			cancel()
			h.drop(timer)
		}
	}()
	l.tr.Raced = true
	resp, err := l.t.onward.Send(l.r.WithContext(ctx), l.tr)
	returned = true
	l.learn(resp)
	if timer.Stop() {
		h.cancel()
		return leave(resp, cancel), err
	}
	if good(resp, l.tr) && !h.lose() {
		// Both have a good answer. The first one's context may be cancelled.
		resp.Body.Close()
		resp = nil
	}
	<-h.ended
	if l.hedged = h.sent; l.hedged {
		l.t.count.hedges.Add(1)
		l.h.count.hedges.Add(1)
	}
	if h.panicked != nil {
		cancel()
		h.cancel()
		if resp != nil {
			resp.Body.Close()
		}
		panic(h.panicked)
	}
	return l.choose(h, resp, err, cancel)
}

// choose returns one of the answers: a good one if there is one, else that of
// the first attempt, else that of the hedge. If the answer that is dropped said how
// long to wait, the next attempt is not made earlier.
func (l *loop) choose(h *hedge, resp *http.Response, err error, cancel func()) (*http.Response, error) {
	switch {
	case h.resp == nil:
		h.cancel()
		return leave(resp, cancel), err
	case good(resp, l.tr), resp != nil && !good(h.resp, h.trip), resp == nil && !good(h.resp, h.trip) && l.done():
		if !good(resp, l.tr) {
			l.floor = serverDelay(ofAnswer(h.resp, h.trip))
		}
		h.resp.Body.Close()
		h.cancel()
		return leave(resp, cancel), err
	case resp != nil:
		l.floor = 0
		resp.Body.Close()
	}
	cancel()
	l.win(h)
	return leave(h.resp, h.cancel), nil
}

// win notes that the hedge's answer is used.
func (l *loop) win(h *hedge) {
	l.won = true
	l.tr.Throttled = h.trip.Throttled
	l.tr.Keep(h.resp, h.trip.Heard(h.resp))
	l.t.count.won.Add(1)
	l.h.count.won.Add(1)
}

// hedgeAfter is how long the first attempt may take before the hedge is sent.
func (l *loop) hedgeAfter() (time.Duration, bool) {
	if q := l.c.Hedge.Quantile; q > 0 {
		if d, ok := l.h.latency.quantile(q); ok {
			return d, true
		}
	}
	return l.c.Hedge.After, l.c.Hedge.After > 0
}

// learn notes how long the first attempt was on the wire. If it lost to its hedge, the
// time until that counts.
func (l *loop) learn(resp *http.Response) {
	lost := l.tr.Cause() == trip.LostHedge
	if l.c.Hedge.Quantile > 0 && !l.tr.OnWire().IsZero() && (good(resp, l.tr) || lost) {
		l.h.latency.add(time.Since(l.tr.OnWire()))
	}
}

// good reports an answer that a hedge may win with.
func good(resp *http.Response, tr *trip.Trip) bool {
	if resp == nil {
		return false
	}
	o, _ := ofAnswer(resp, tr)
	return o == Answered
}

// hedge is the second attempt.
type hedge struct {
	t           *Transport
	first       *trip.Trip
	host        *host
	c           *settings
	limits      *trip.Timeouts
	r           *http.Request
	ctx         context.Context
	cancel      context.CancelFunc
	cancelFirst context.CancelFunc
	ended       chan struct{}
	sent        bool           // these three are written before ended is closed
	resp        *http.Response // nil: none
	panicked    any            // by what is below, on this goroutine

	mu      sync.Mutex
	decided bool // one of the two has a good answer
	trip    *trip.Trip
}

// lose ends the hedge because the first attempt has a good answer. It is
// false if the hedge had one before.
func (h *hedge) lose() bool {
	h.mu.Lock()
	won := !h.decided
	h.decided = true
	if won && h.trip != nil {
		h.trip.SetCause(trip.LostHedge)
	}
	h.mu.Unlock()
	if won {
		h.cancel()
	}
	return won
}

// run sends the hedge if it costs nobody else anything: there is room for it
// now, and the allowance pays.
func (h *hedge) run() {
	defer func() {
		h.panicked = recover() // goes on where the caller can recover it
		close(h.ended)
	}()
	r, tr := h.r.WithContext(h.ctx), h.first.Fork()
	tr.Bound(h.limits)
	h.mu.Lock()
	h.trip = tr
	h.mu.Unlock()
	if wait, err := h.t.onward.Outlook(r, tr); err != nil || wait > 0 {
		return
	}
	if h.ctx.Err() != nil || !h.pay() {
		return
	}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			h.payBack()
			return
		}
		r.Body = body
	}
	resp, err := h.t.onward.Send(r, tr)
	if notsent.Refused(err) != notsent.Nobody {
		h.payBack()
		return
	}
	h.sent = true
	h.host.attempts.Add(1)
	h.mu.Lock()
	won := err == nil && good(resp, tr) && !h.decided
	h.decided = h.decided || won
	h.mu.Unlock()
	if err == nil {
		h.resp = resp
	}
	if won {
		h.first.SetCause(trip.LostHedge)
		h.cancelFirst()
	}
}

// drop ends a hedge that nobody wants any more.
func (h *hedge) drop(timer *time.Timer) {
	h.cancel()
	if timer.Stop() {
		return
	}
	<-h.ended
	if h.resp != nil {
		h.resp.Body.Close()
	}
}

// pay takes what a hedge costs from the allowance.
func (h *hedge) pay() bool {
	return h.c.Allowance.Disable || h.host.allowance.take(h.c.Allowance.Tokens, time.Now())
}

// payBack returns it: the hedge was not sent.
func (h *hedge) payBack() {
	if !h.c.Allowance.Disable {
		h.host.allowance.give(cost, time.Now())
	}
}

// leave gives a response the duty to end its context with its body.
func leave(resp *http.Response, cancel context.CancelFunc) *http.Response {
	switch {
	case resp == nil || resp.Body == nil || resp.Body == http.NoBody:
		cancel()
	default:
		resp.Body = &ending{resp.Body, cancel}
	}
	return resp
}

// ending is a body that ends a context with itself.
type ending struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil {
		e.cancel()
	}
	return n, err
}

func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.cancel()
	return err
}
