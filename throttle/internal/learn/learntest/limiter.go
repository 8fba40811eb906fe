package learntest

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/learn"
)

// Instant is the learner's: nanoseconds of one clock, here the simulation's.
type Instant = learn.Instant

const forever = Instant(math.MaxInt64 / 4)

// A limiter is what a server counts with. Arrivals come in order of time.
type limiter interface {
	// room is the first instant from at on at which one more is accepted if
	// nothing arrives before.
	room(at Instant) Instant
	take(at Instant, accepted bool)
	told() told
	scale(f float64) // the quota changes
	clone() limiter
}

// told is what a limiter could say of itself in a header.
type told struct {
	limit  float64
	window time.Duration
}

// A window is a fixed window, by the clock (start is then its phase) or from
// the first request on.
type window struct {
	limit   int
	per     Instant
	first   bool
	counted bool // refused requests count
	start   Instant
	n       int
	begun   bool
}

func (w *window) roll(at Instant) {
	switch {
	case w.first && w.begun && at >= w.start+w.per:
		w.begun, w.n = false, 0
	case !w.first && at >= w.start+w.per:
		w.start, w.n = at-(at-w.start)%w.per, 0
	}
}

func (w *window) room(at Instant) Instant {
	w.roll(at)
	if w.n < w.limit {
		return at
	}
	return w.start + w.per
}

func (w *window) take(at Instant, accepted bool) {
	w.roll(at)
	if w.first && !w.begun {
		w.begun, w.start = true, at
	}
	if accepted || w.counted {
		w.n++
	}
}

func (w *window) told() told { return told{float64(w.limit), time.Duration(w.per)} }

func (w *window) scale(f float64) { w.limit = max(1, int(float64(w.limit)*f)) }
func (w *window) clone() limiter  { c := *w; return &c }

// A slide is a sliding log: at most limit in any window of length per.
type slide struct {
	limit   int
	per     Instant
	counted bool
	dates   []Instant
}

func (s *slide) roll(at Instant) {
	i := 0
	for i < len(s.dates) && s.dates[i]+s.per <= at {
		i++
	}
	s.dates = s.dates[i:]
}

func (s *slide) room(at Instant) Instant {
	s.roll(at)
	if len(s.dates) < s.limit {
		return at
	}
	return s.dates[len(s.dates)-s.limit] + s.per
}

func (s *slide) take(at Instant, accepted bool) {
	s.roll(at)
	if accepted || s.counted {
		s.dates = append(s.dates, at)
	}
}

func (s *slide) told() told { return told{float64(s.limit), time.Duration(s.per)} }

func (s *slide) scale(f float64) { s.limit = max(1, int(float64(s.limit)*f)) }
func (s *slide) clone() limiter  { c := *s; c.dates = append([]Instant(nil), s.dates...); return &c }

// A counter weighs the window before with the part of it that still overlaps.
type counter struct {
	limit     int
	per       Instant
	start     Instant
	prev, cur float64
}

func (c *counter) roll(at Instant) {
	if at < c.start+c.per {
		return
	}
	n := (at - c.start) / c.per
	if n == 1 {
		c.prev = c.cur
	} else {
		c.prev = 0
	}
	c.cur, c.start = 0, c.start+n*c.per
}

func (c *counter) level(at Instant) float64 {
	return c.cur + c.prev*(1-float64(at-c.start)/float64(c.per))
}

func (c *counter) room(at Instant) Instant {
	c.roll(at)
	limit := float64(c.limit)
	if c.level(at)+1 <= limit {
		return at
	}
	need := func(prev, cur float64, start Instant) Instant {
		f := 1.0
		if prev > 0 {
			f = 1 - (limit-1-cur)/prev
		}
		return start + Instant(math.Ceil(f*float64(c.per))) + 1
	}
	if c.cur+1 <= limit {
		return max(at, min(need(c.prev, c.cur, c.start), c.start+c.per))
	}
	return max(c.start+c.per, need(c.cur, 0, c.start+c.per))
}

func (c *counter) take(at Instant, accepted bool) {
	c.roll(at)
	if accepted {
		c.cur++
	}
}

func (c *counter) told() told { return told{float64(c.limit), time.Duration(c.per)} }

func (c *counter) scale(f float64) { c.limit = max(1, int(float64(c.limit)*f)) }
func (c *counter) clone() limiter  { d := *c; return &d }

// A bucket holds size tokens and gains rate a second.
type bucket struct {
	rate, size float64
	used       float64
	at         Instant
	counted    bool
}

func (b *bucket) roll(at Instant) {
	b.used = max(0, b.used-b.rate*time.Duration(at-b.at).Seconds())
	b.at = at
}

func (b *bucket) room(at Instant) Instant {
	b.roll(at)
	if b.used+1 <= b.size+1e-9 {
		return at
	}
	return at + Instant((b.used+1-b.size)/b.rate*1e9) + 1
}

func (b *bucket) take(at Instant, accepted bool) {
	b.roll(at)
	if accepted || b.counted && b.used < b.size {
		b.used++
	}
}

func (b *bucket) told() told { return told{b.size, time.Duration(b.size / b.rate * 1e9)} }

func (b *bucket) scale(f float64) { b.rate *= f }
func (b *bucket) clone() limiter  { c := *b; return &c }
