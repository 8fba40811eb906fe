package retry

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

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

	trail atomic.Pointer[trail] // nil: nobody has looked for a trace

	mu     sync.Mutex
	whole  context.Context // what context makes of it; nil: nobody has needed it
	cancel context.CancelCauseFunc
	done   chan struct{} // see plain; nil: nobody has waited
	after  func()        // the one descendant's, to be called at the end; nil: there is none
	place  uint32        // how often after was given away
	over   bool

	full   bool // see newTrail
	direct bool // who gets the context makes others of it itself, with nothing in between
}

// plain returns the channel by which c ends if it needs no other context for that; else
// nil.
func (c *attemptContext) plain() chan struct{} {
	if !c.direct || c.Context.Done() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil && c.whole == nil {
		c.done = make(chan struct{})
		if c.over {
			close(c.done)
		}
	}
	return c.done
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
	first := c.whole == nil
	if first {
		c.whole, c.cancel = whole, cancel
	}
	whole, over := c.whole, c.over
	c.mu.Unlock()
	if !first || over {
		cancel(nil) // with a cause, end has made whole before
	}
	return whole
}

func (c *attemptContext) state() (whole context.Context, over bool) {
	c.mu.Lock()
	whole, over = c.whole, c.over
	c.mu.Unlock()
	return whole, over
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
	w = watchers{c.cancel, c.done, c.after}
	c.after = nil
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
	if c.done == nil || c.after != nil || c.over {
		return 0, false
	}
	c.after = f
	c.place++
	return c.place, true
}

// drop reports that the function that was given this place is not called any more.
func (c *attemptContext) drop(place uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.after == nil || c.place != place {
		return false
	}
	c.after = nil
	return true
}

// Value is context.Context's. Package context asks it for what tells the
// cause of the end, which whole knows. It is asked also while stop ends what
// descends from it, so it waits for nobody.
func (c *attemptContext) Value(key any) any {
	t := c.trail.Load()
	if t != nil {
		t.dial()
	}
	if key == c.clocks.traceKey {
		return c.watch(t)
	}
	switch whole, over := c.state(); {
	case whole != nil:
		return whole.Value(key)
	case over:
		return c.real().Value(key)
	}
	return c.Context.Value(key)
}

// String is how package context, and whoever logs a context, shows it.
func (c *attemptContext) String() string { return fmt.Sprint(c.Context) + ".WithAttempt" }

// watch returns the trace, which calls the caller's as well. t is nil if there
// is none yet.
func (c *attemptContext) watch(t *trail) *httptrace.ClientTrace {
	if t != nil {
		return &t.trace
	}
	var host *hosts.Entry
	if tr := trip.From(c.Context); tr != nil {
		host = tr.Entry
	}
	t = newTrail(c.clocks, host, c.full)
	if httptrace.ContextClientTrace(c.Context) != nil {
		httptrace.WithClientTrace(c.Context, &t.trace) // changes it
	}
	c.trail.CompareAndSwap(nil, t)
	return &c.trail.Load().trace
}

// traceKey is the key that httptrace looks for.
func traceKey() any {
	spy := keySpy{Context: context.Background()}
	httptrace.ContextClientTrace(&spy)
	return spy.key
}

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
