package refill

import (
	"cmp"
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// near is by how much two stated resets of one window may differ: they are whole seconds,
	// and of a clock of which only whole seconds are known.
	near = 2 * time.Second
	// leastSpan is the shortest window that is told from the one after it.
	leastSpan = 2 * near
)

// A counter is what would come back if the limit were a sliding counter, which has the units of
// its present window and a share of those of the last one, which shrinks to nothing until the
// present one ends. So the units of the last window come back evenly during this one. At the
// end of a window nothing jumps, so it matters little that its end is stated in whole seconds.
type counter struct {
	end    meter.Instant // of the present window; zero: not known
	span   time.Duration // how long a window is; zero: not known
	steady bool          // an end followed the one before it by span
	spent  [3]float64    // units of the present window, of the last one, and of the one before it
}

// heard takes in an answer, heard at now: the end of its window, and the units that its request
// took. window is how long windows are, if that was stated, else zero.
func (c *counter) heard(now, end meter.Instant, window time.Duration, units float64) {
	later := end.Sub(c.end)
	n := 0 // how many windows have ended
	if c.span >= leastSpan {
		n = int((later + c.span/2) / c.span)
	}
	switch {
	case end == 0, window > 0 && window < leastSpan:
		return
	case c.end == 0:
		*c = counter{end: end, span: window}
	case later.Abs() <= near:
		c.end = min(c.end, end) // most servers round up
	case later < 0 && (later+c.span).Abs() <= near:
		c.spent[1] += units // it was overtaken by answers of the next window
		return
	case later < 0 || now < c.end.Add(-near): // no window ended: a bucket, or a log
		*c = counter{end: end}
	case n == 0 || (later-time.Duration(n)*c.span).Abs() > near:
		*c = counter{end: end, span: cmp.Or(window, later), spent: [3]float64{0, c.spent[0]}}
	default:
		c.steady, c.end = true, end
		for range min(n, len(c.spent)) {
			c.spent = [3]float64{0, c.spent[0], c.spent[1]}
		}
	}
	c.spent[0] += units
}

// window is the end of the window at now; zero: no answer has stated one yet.
func (c *counter) window(now meter.Instant) meter.Instant {
	if c.span < leastSpan || now <= c.end {
		return c.end
	}
	return c.end.Add((now.Sub(c.end)/c.span + 1) * c.span)
}

// next reports whether an answer, heard at now, is the first one that states the end of the next
// window.
func (c *counter) next(now, end meter.Instant) bool {
	return c.span >= leastSpan && now >= c.end.Add(-near) && (end.Sub(c.end)-c.span).Abs() <= near
}

// in is how many units were taken by requests whose answers stated the same end; false: that is
// not known.
func (c *counter) in(now, end meter.Instant) (units float64, ok bool) {
	if end != 0 && c.end != 0 && end.Sub(c.end).Abs() <= near {
		return c.spent[0], true
	}
	return 0, c.next(now, end)
}

// doubt is by how much gain may be wrong, because ends are rounded.
func (c *counter) doubt() float64 {
	return math.Abs(c.spent[0]-c.spent[1]) * near.Seconds() / 2 / c.span.Seconds()
}

// shows is after how many seconds so much has come back that a counter is certainly told from a
// window by it, or a quarter of a window.
func (c *counter) shows() float64 {
	return c.span.Seconds() * min(0.25, most/max(1, c.spent[0], c.spent[1]))
}

// gain is how many units come back between two instants, if none are spent after them.
func (c *counter) gain(from, to meter.Instant) float64 {
	sum := 0.0
	for i, units := range c.spent {
		end := c.end.Add(time.Duration(1-i) * c.span) // of the window in which they come back
		during := min(to, end).Sub(max(from, end.Add(-c.span)))
		sum += units * max(0, during.Seconds()) / c.span.Seconds()
	}
	return sum
}

// until is when so many units have come back since from, or all.
func (c *counter) until(from meter.Instant, units float64) meter.Instant {
	for i := len(c.spent) - 1; i >= 0; i-- {
		end := c.end.Add(time.Duration(1-i) * c.span)
		there := c.gain(from, end)
		if there >= units {
			return max(from, end.Add(-c.span)).Add(meter.Seconds(units / c.spent[i] * c.span.Seconds()))
		}
		units -= there
		from = max(from, end)
	}
	return from
}

// all is when all units have come back, if no more are spent.
func (c *counter) all() meter.Instant { return c.end.Add(c.span) }

// Gain is how many units of a Counter come back between two instants, the first of which is no
// longer ago than a window. full says that all have come back.
func (j *Judge) Gain(from, to meter.Instant) (units float64, full bool) {
	return j.counter.gain(from, to), to >= j.counter.all()
}

// Until is when so many units of a Counter have come back since from, or all.
func (j *Judge) Until(from meter.Instant, units float64) meter.Instant {
	return j.counter.until(from, units)
}

// Span is how long windows of a Counter are.
func (j *Judge) Span() time.Duration { return j.counter.span }
