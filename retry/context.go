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
type attemptContext struct {
	context.Context // the request's, in which its trip is
	clocks          *clocks

	trail atomic.Pointer[trail] // nil: nobody has looked for a trace

	mu     sync.Mutex
	whole  context.Context // what context makes of it; nil: nobody has waited
	cancel context.CancelCauseFunc
	over   bool

	full bool // see newTrail
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
	cancel := c.finish()
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// finish is end with mu held. What it returns is to be called without it, with the
// cause.
func (c *attemptContext) finish() context.CancelCauseFunc {
	if c.over {
		return nil
	}
	c.over = true
	return c.cancel
}

// Done is context.Context's.
func (c *attemptContext) Done() <-chan struct{} { return c.real().Done() }

// Err is context.Context's.
func (c *attemptContext) Err() error {
	whole, over := c.state()
	switch {
	case over:
		whole = c.real()
		<-whole.Done() // another goroutine may be about to end it
	case whole == nil:
		return c.Context.Err()
	}
	return whole.Err()
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
