package throttle

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// transit is how long after its grant a unit may reach the server, at most. What
// is on its way for longer is taken to have been seen then, so that answers may
// take as long as they like: the rate is no less than Limit in Per and transit.
// A tenth is as much as a network may vary, and costs a tenth of the rate where
// no answer comes sooner.
func (s *rateSpec) transit() instant { return instant(s.Per / 10) }

// grain is within what time units of a window share a date. As many as a log
// may have entries need not.
func (s *rateSpec) grain() instant {
	if s.Limit <= 2*exact {
		return 0
	}
	return instant(s.Per / exact)
}

// window counts the units of the last Per, by the latest moment at which the
// server may have seen them: when their answer came, or the transit after they
// were granted if that is sooner. The zero value is empty.
type window struct {
	sent unitLog     // by that moment
	out  *unanswered // granted, not answered, younger than the transit; nil: none were ever
}

// look dates what is under way for longer than the transit, and forgets what has
// left the window.
func (w *window) look(now instant, s *rateSpec) {
	for {
		t, ok := w.out.next(now - s.transit())
		if !ok {
			break
		}
		w.sent.add(t.at+s.transit(), t.n, s.grain())
	}
	if w.sent.forget(now - instant(s.Per)); len(w.sent.log) == 0 {
		w.out.shrink() // an idle key is small
	}
}

// used is the units in the window, as of the last look.
func (w *window) used() int64 { return w.sent.sum + w.out.units() }

// at is the earliest instant at which n units fit, n <= s.Limit. For what is
// under way it assumes that the answers come now.
func (w *window) at(now instant, s *rateSpec, n int64) instant {
	w.look(now, s)
	need := w.used() + n - int64(s.Limit)
	if need <= 0 {
		return now
	}
	for _, t := range w.sent.log {
		if need -= t.n; need <= 0 {
			return t.at.Add(s.Per)
		}
	}
	return now.Add(s.Per)
}

// answersIn is about how long units are under way, if as many are spent all the
// time as in the last Per: for so long, each counts beyond Per.
func (w *window) answersIn(per time.Duration) time.Duration {
	if w.sent.sum <= 0 {
		return 0
	}
	return time.Duration(float64(per) * min(1, float64(w.out.units())/float64(w.sent.sum)))
}

// take charges n units: of a request that awaits its answer, or sent now.
func (w *window) take(now instant, s *rateSpec, n int64, held bool) {
	if n <= 0 {
		return
	}
	w.look(now, s)
	n = min(n, math.MaxInt64-w.used()) // a settlement may be of any size
	if held {
		w.under().add(now, n)
	} else {
		w.sent.add(now, n, s.grain())
	}
}

// inherit begins w with what o, whose Per may be another, has in it.
func (w *window) inherit(now instant, s *rateSpec, o *window) {
	w.sent = unitLog{sum: o.sent.sum, first: longAgo, log: append([]stamp(nil), o.sent.log...)}
	if o.out != nil {
		for _, t := range o.out.log[o.out.head:] {
			if t.at+s.transit() > now {
				w.under().add(t.at, t.n)
			} else {
				w.sent.add(now, t.n, 0)
			}
		}
	}
	w.look(now, s)
}

// under is w.out, made if need be: a Limiter's keys do without.
func (w *window) under() *unanswered {
	if w.out == nil {
		w.out = new(unanswered)
	}
	return w.out
}

// answered dates n units that were granted at granted.
func (w *window) answered(now instant, s *rateSpec, n int64, granted instant) {
	w.look(now, s)
	if n = w.out.remove(granted, n); n > 0 {
		w.sent.add(now, n, s.grain())
	}
}

// back takes n units of a grant out.
func (w *window) back(now instant, s *rateSpec, n int64, granted, answered instant) {
	w.look(now, s)
	date := granted + s.transit()
	if answered == 0 {
		n -= w.out.remove(granted, n)
	} else {
		date = min(date, answered)
	}
	if date.Add(s.Per) > now {
		w.sent.remove(date, n)
	}
}

// calendar counts the units of one window of a place's clock. Units under way
// when the window ends count in the next one too: nobody knows where the server
// counts them. It has seen them the transit after they were granted.
type calendar struct {
	clock *wallClock
	out   unanswered // granted, not answered, perhaps seen in this window
	used  int64      // out included
	start int64      // of the window, in nanoseconds of the wall's clock
	end   int64
}

// wallClock relates instants to the clock on the wall, which may step.
type wallClock struct {
	zero int64 // what the wall's clock showed at instant 0, in nanoseconds since 1970
}

// roll begins the window that now is in, if it is another one. When the clock
// steps back into an earlier window, what is used stays used.
func (c *calendar) roll(now instant, s *rateSpec) {
	wall := c.clock.zero + int64(now)
	if wall >= c.start && wall < c.end {
		return
	}
	ended := wall >= c.end
	t := time.Unix(0, wall).In(s.Align)
	c.start = meter.WindowStart(t, s.Per).UnixNano()
	c.end = meter.WindowEnd(t, s.Per).UnixNano()
	if ended {
		c.out.forget(instant(c.start-c.clock.zero) - s.transit())
		c.used = c.out.sum
	}
}

func (c *calendar) at(now instant, s *rateSpec, n int64) instant {
	c.roll(now, s)
	if n <= int64(s.Limit)-c.used {
		return now
	}
	return instant(c.end - c.clock.zero)
}

func (c *calendar) take(now instant, s *rateSpec, n int64, held bool) {
	c.roll(now, s)
	n = min(n, math.MaxInt64-c.used)
	c.used += n
	if held {
		c.out.add(now, n)
	}
}

func (c *calendar) answered(now instant, s *rateSpec, n int64, granted instant) {
	c.roll(now, s)
	c.out.remove(granted, n)
}

func (c *calendar) back(now instant, s *rateSpec, n int64, granted, answered instant) {
	c.roll(now, s)
	date := granted + s.transit()
	if answered == 0 {
		c.out.remove(granted, n)
	} else {
		date = min(date, answered)
	}
	if c.clock.zero+int64(date) >= c.start {
		c.used = max(c.out.sum, c.used-n)
	}
}
