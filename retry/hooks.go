package retry

import (
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
)

// hooks is a trace whose functions tell the context of one attempt what its base does. Each of
// the functions takes an allocation, so hooks are kept, together with the attempt's clock, for
// a later attempt, if nobody can call them any more (trail.leave).
type hooks struct {
	trace httptrace.ClientTrace
	of    atomic.Pointer[attemptContext] // nil: nobody's
	lent  bool                           // they may be another attempt's afterwards
}

// newHooks returns hooks. Only of what is not repeated anyway, full, they tell whether headers
// were written. A base that is direct is an http.Transport. It looks for the trace on the
// goroutine that dials, which is enough to know (trail.dial), and so whoever dials after the
// end of an attempt has nothing to call.
func newHooks(full, direct bool) *hooks {
	h := new(hooks)
	h.trace.GetConn = h.getConn
	h.trace.GotConn = h.gotConn
	h.trace.Got1xxResponse = h.gotInterim
	if !direct {
		h.trace.ConnectStart = h.connectStart
	}
	if full {
		h.trace.WroteHeaders = h.wroteHeaders
	}
	return h
}

func (h *hooks) getConn(string) {
	if c := h.of.Load(); c != nil {
		c.mu.Lock()
		c.shown.getConn(c.clocks)
		c.mu.Unlock()
	}
}

func (h *hooks) gotConn(info httptrace.GotConnInfo) {
	if c := h.of.Load(); c != nil {
		c.mu.Lock()
		c.shown.gotConn(c.clocks, info)
		c.mu.Unlock()
	}
}

func (h *hooks) connectStart(string, string) {
	if c := h.of.Load(); c != nil {
		c.mu.Lock()
		c.shown.dial(c.clocks)
		c.mu.Unlock()
	}
}

func (h *hooks) wroteHeaders() {
	if c := h.of.Load(); c != nil {
		c.mu.Lock()
		c.shown.wrote = true
		c.mu.Unlock()
	}
}

func (h *hooks) gotInterim(int, textproto.MIMEHeader) error {
	c := h.of.Load()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.gotInterim(c.clocks)
}
