package retry

import (
	"context"
	"fmt"
	"math"
	"net/http/httptrace"
	"sync"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/trip"
)

// attemptContext is the context of an attempt. It can be ended with a cause,
// and it has a trace of its own for whoever looks for one. Both cost nothing
// until somebody asks: not every base waits for the end of a request, or
// traces it.
//
// Usually package context does the work, by a context that descends from the request's.
// If that cannot end, a channel and place for one descendant are enough, which take 250 bytes
// less: package context would keep a map of descendants. It tells a descendant by AfterFunc
// only if that descends directly, as net/http's does. For others it would start a goroutine.
type attemptContext struct {
	context.Context // the request's, in which its trip is
	clocks          *clocks

	mu    sync.Mutex
	shown *shown // nil: nobody has looked for a trace or waited for the end, and there is no memory for it
	clock *clock // the attempt's, which keeps memory for later ones; nil: none yet, or it has struck
	over  bool

	full bool // see newHooks
	stand
}

// shown is what an attempt has for those who look at its context: a trace, and an end to wait
// for. If the base is known to look, its memory is part of that of the flight (tracked).
type shown struct {
	trail
	whole  context.Context // what context makes of it; nil: nobody has needed it
	cancel context.CancelCauseFunc
	done   chan struct{} // see plain; nil: nobody has waited
	after  func()        // the one descendant's, to be called at the end; nil: there is none
	place  uint32        // how often after was given away
	dones  uint16        // how often done was, at most math.MaxUint16
}

// shows returns what is shown, and makes it if there is nothing yet. mu is held.
func (c *attemptContext) shows() *shown {
	if c.shown == nil {
		c.shown = new(shown)
		c.clocks.looks.Store(true)
	}
	return c.shown
}

// plain returns the channel by which c ends if it needs no other context for that; else
// nil.
func (c *attemptContext) plain() chan struct{} {
	if !c.clocks.direct {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shows()
	if s.done == nil && s.whole == nil && c.endless(s) {
		s.done = c.clock.channel()
		if c.over {
			close(s.done)
		}
	}
	if s.dones < math.MaxUint16 {
		s.dones++
	}
	return s.done
}

// endless reports that plain may make a channel: nothing above c can end, which is found out
// without mu.
func (c *attemptContext) endless(s *shown) bool {
	c.mu.Unlock()
	never := c.Context.Done() == nil
	c.mu.Lock()
	return never && s.done == nil && s.whole == nil
}

// real returns the context that others can wait for and descend from.
func (c *attemptContext) real() context.Context {
	if whole, _ := c.state(); whole != nil {
		return whole
	}
	return c.adopt(context.WithCancelCause(c.Context))
}

// adopt makes whole the real one unless there is one by now.
func (c *attemptContext) adopt(whole context.Context, cancel context.CancelCauseFunc) context.Context {
	c.mu.Lock()
	s := c.shows()
	first := s.whole == nil
	if first {
		s.whole, s.cancel = whole, cancel
	}
	whole, over := s.whole, c.over
	c.mu.Unlock()
	if !first || over {
		cancel(nil) // with a cause, end has made whole before
	}
	return whole
}

func (c *attemptContext) state() (whole context.Context, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown == nil {
		return nil, c.over
	}
	return c.shown.whole, c.over
}

// end ends it. Only the first call counts.
func (c *attemptContext) end(cause error) {
	if cause != nil {
		c.real() // which keeps the cause, for which there is no place here
	}
	c.mu.Lock()
	watchers := c.finish()
	c.mu.Unlock()
	watchers.tell(cause)
}

// watchers is whom the end of an attempt is to be told.
type watchers struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	after  func()
}

// finish is end with mu held. What it returns is to be told without it.
func (c *attemptContext) finish() (w watchers) {
	if c.over {
		return w
	}
	c.over = true
	s := c.shown
	if s == nil {
		return w
	}
	w = watchers{s.cancel, s.done, s.after}
	s.after = nil
	if c.clock != nil && s.done != nil && s.whole == nil && uint32(s.dones) == s.place*c.clocks.asks {
		// Only descendants have it, which do without: they left, or are told.
		c.clock.done, s.done, w.done = s.done, nil, nil
	}
	return w
}

// tell ends what descends from the context. Who sees done closed asks for the cause.
func (w *watchers) tell(cause error) {
	if w.cancel != nil {
		w.cancel(cause)
	}
	if w.done != nil {
		close(w.done)
	}
	if w.after != nil {
		w.after()
	}
}

// Done is context.Context's.
func (c *attemptContext) Done() <-chan struct{} {
	if done := c.plain(); done != nil {
		return done
	}
	return c.real().Done()
}

// Err is context.Context's.
func (c *attemptContext) Err() error {
	whole, over := c.state()
	switch {
	case over && c.plain() != nil:
		<-c.plain() // another goroutine may be about to end it
		return context.Canceled
	case over:
		whole = c.real()
		<-whole.Done() // likewise
	case whole == nil:
		return c.Context.Err()
	}
	return whole.Err()
}

// AfterFunc is what package context calls instead of starting a goroutine that waits
// for Done.
func (c *attemptContext) AfterFunc(f func()) (stop func() bool) {
	if place, ok := c.keep(f); ok {
		return func() bool { return c.drop(place) }
	}
	return context.AfterFunc(c.real(), f)
}

// keep makes f the function to be called at the end, if c has place for it.
func (c *attemptContext) keep(f func()) (place uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shown
	if s == nil || s.done == nil || s.after != nil || c.over {
		return 0, false
	}
	s.after = f
	s.place++
	return s.place, true
}

// drop reports that the function that was given this place is not called any more.
func (c *attemptContext) drop(place uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown.after == nil || c.shown.place != place {
		return false
	}
	c.shown.after = nil
	return true
}

// Value is context.Context's. Package context asks it for what tells the
// cause of the end, which whole knows. It is asked also while stop ends what
// descends from it, so it waits for nobody.
func (c *attemptContext) Value(key any) any {
	var whole context.Context
	var trace *httptrace.ClientTrace
	known := false
	c.mu.Lock()
	if s := c.shown; s != nil {
		whole = s.whole
		trace, known = s.look(c.clocks)
	}
	over := c.over
	c.mu.Unlock()
	switch {
	case key == c.clocks.traceKey:
		if !known {
			trace = c.follow()
		}
		return trace
	case whole != nil:
		return whole.Value(key)
	case over:
		return c.real().Value(key)
	}
	return c.Context.Value(key)
}

// String is how package context, and whoever logs a context, shows it.
func (c *attemptContext) String() string { return fmt.Sprint(c.Context) + ".WithAttempt" }

// follow makes the trace, which calls the caller's as well, unless there is one by now.
func (c *attemptContext) follow() *httptrace.ClientTrace {
	var h *hooks
	if httptrace.ContextClientTrace(c.Context) != nil {
		h = newHooks(c.full, c.clocks.direct)
		httptrace.WithClientTrace(c.Context, &h.trace) // changes it
	}
	var host *hosts.Entry
	if tr := trip.From(c.Context); tr != nil && !c.clocks.direct { // else there is a trail already
		host = tr.Entry
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.shows().trail
	if t.lines == nil {
		t.lines = linesOf(host)
	}
	if trace, known := t.look(c.clocks); known {
		return trace
	}
	if h == nil {
		h = c.clock.hooksFor(c.full, c.clocks.direct)
	}
	h.of.Store(c)
	t.hooks, t.known = h, true
	return &h.trace
}

// traceKey is the key that httptrace looks for.
func traceKey() any {
	spy := keySpy{Context: context.Background()}
	httptrace.ContextClientTrace(&spy)
	return spy.key
}

// asksOfOne is how often package context calls Done of a context to derive another from it.
func asksOfOne() uint32 {
	spy := doneSpy{Context: context.Background(), done: make(chan struct{})}
	_, stop := context.WithCancelCause(&spy)
	stop(nil)
	return spy.asked
}

// doneSpy is a context that counts how often it is asked for its channel.
type doneSpy struct {
	context.Context
	done  chan struct{}
	asked uint32
}

// Done is context.Context's.
func (s *doneSpy) Done() <-chan struct{} {
	s.asked++
	return s.done
}

// AfterFunc is that of attemptContext.
func (s *doneSpy) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

// keySpy is a context that notes what it is asked for.
type keySpy struct {
	context.Context
	key any
}

// Value is context.Context's.
func (s *keySpy) Value(key any) any {
	s.key = key
	return nil
}
