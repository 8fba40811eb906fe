package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A serverClock is what is known of a host's clock, and the Date of the answer that is
// learned from. The domain's lock guards it.
type serverClock struct {
	meter.Clock
	text [len(http.TimeFormat)]byte // of the last Date, which stays the same for a second
	last int64                      // that Date, in Unix seconds; zero: it was none
	unix int64                      // of the answer that is learned from; zero: it had none
}

// reads is the host's clock; nil: nothing is known of it.
func (s *hostStart) reads() *meter.Clock {
	if s == nil || s.clock == nil {
		return nil
	}
	return &s.clock.Clock
}

// hears is the host's clock, made if need be.
func (s *hostStart) hears() *serverClock {
	if s.clock == nil {
		s.clock = new(serverClock)
	}
	return s.clock
}

// hear takes in the Date header of an answer heard now to a request that was sent at sent;
// "": it had none.
func (c *serverClock) hear(now, sent instant, date string) {
	if c.unix = 0; date == "" {
		return
	}
	if date != string(c.text[:]) {
		t, err := http.ParseTime(date)
		if err != nil || copy(c.text[:], date) != len(date) {
			return
		}
		c.last = t.Unix()
	}
	c.unix = c.last
	c.Hear(now, sent, c.unix)
}

// reset is the reset of a limit of that answer. One that was said as a point in time is
// read by the server's clock, which is past its Date by then.
func (c *serverClock) reset(now instant, l *headers.Limit) headers.Opt[time.Duration] {
	r := l.Reset
	if l.ResetDated && r.Known && c != nil && c.unix != 0 {
		r.Value = max(0, r.Value+c.Shows(c.unix).Sub(now))
	}
	return r
}

// dateOf is the Date of an answer from a server; "": none, or the answer was kept by a
// cache since then.
func dateOf(h http.Header) string {
	if len(h["Age"]) > 0 {
		return ""
	}
	if d := h["Date"]; len(d) == 1 {
		return d[0]
	}
	return ""
}
