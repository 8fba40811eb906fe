package throttle

import (
	"math"
	"time"

	meters "github.com/weirhttp/weir/throttle/internal/meter"
)

// window counts the units of the last Per, by when they were sent. Units of
// requests whose answers have not come yet are held: the server may count them
// only when it answers. The zero value is empty.
//
// Up to exact units are kept one by one. Above, units less than Per/64 apart
// share an entry and are dated by its last one: they leave up to that much too
// late, never too early.
type window struct {
	held  int64 // granted, not answered
	count int64 // sum over log
	first instant
	log   []stamp // oldest first
}

// stamp is units that leave the window together.
type stamp struct {
	at instant // of the last of them
	n  int64
}

// expire forgets what has left the window.
func (w *window) expire(now instant, per time.Duration) {
	i := 0
	for i < len(w.log) && w.log[i].at.add(per) <= now {
		w.count -= w.log[i].n
		i++
	}
	if i == 0 {
		return
	}
	if i == len(w.log) {
		w.log = w.log[:0]
		if cap(w.log) > 8 {
			w.log = nil // an idle key is small
		}
		return
	}
	w.log = w.log[:copy(w.log, w.log[i:])]
}

// at is the earliest instant at which n units fit, n <= s.Limit. For what is
// held it assumes that the answers come now.
func (w *window) at(now instant, s *rateSpec, n int64) instant {
	w.expire(now, s.Per)
	need := w.count + w.held + n - int64(s.Limit)
	if need <= 0 {
		return now
	}
	for i := range w.log {
		if need -= w.log[i].n; need <= 0 {
			return w.log[i].at.add(s.Per)
		}
	}
	return now.add(s.Per)
}

// answersIn is about how long answers take, if as many units are spent all the
// time as in the last Per: for so long, each counts beyond Per.
func (w *window) answersIn(per time.Duration) time.Duration {
	if w.count <= 0 {
		return 0
	}
	return time.Duration(float64(per) * min(1, float64(w.held)/float64(w.count)))
}

// take charges n units: held, or sent now.
func (w *window) take(now instant, s *rateSpec, n int64, held bool) {
	if held {
		w.held += n
		return
	}
	w.add(now, s, n)
}

// answered dates n held units: they count until Per after now.
func (w *window) answered(now instant, s *rateSpec, n int64) {
	w.held -= n
	w.add(now, s, n)
}

func (w *window) add(now instant, s *rateSpec, n int64) {
	if n <= 0 {
		return
	}
	w.expire(now, s.Per)
	n = min(n, math.MaxInt64-w.count-w.held) // a settlement may be of any size
	w.count += n
	if last := len(w.log) - 1; last >= 0 {
		if t := &w.log[last]; t.at == now || s.Limit > exact && now-w.first < instant(s.Per/exact) {
			t.at, t.n = now, t.n+n
			return
		}
	}
	if len(w.log) >= 2*exact {
		w.squeeze()
	}
	w.first = now
	w.log = append(w.log, stamp{now, n})
}

// squeeze makes room in a log that cancelled and settled units have filled up.
func (w *window) squeeze() {
	kept := w.log[:0]
	for _, t := range w.log {
		if t.n > 0 {
			kept = append(kept, t)
		}
	}
	w.log = kept
	if len(w.log) < 2*exact {
		return
	}
	for i := 0; i+1 < len(w.log); i += 2 {
		w.log[i/2] = stamp{w.log[i+1].at, w.log[i].n + w.log[i+1].n}
	}
	w.log = w.log[:len(w.log)/2]
}

// back takes n units of a grant out: held ones, or those dated at.
func (w *window) back(now instant, s *rateSpec, n int64, at instant, held bool) {
	if held {
		w.held -= n
		return
	}
	w.expire(now, s.Per)
	lo, hi := 0, len(w.log)
	for lo < hi { // the first entry that is not older than at
		if mid := (lo + hi) / 2; w.log[mid].at < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(w.log) || at.add(s.Per) <= now {
		return
	}
	n = min(n, w.log[lo].n)
	w.log[lo].n -= n
	w.count -= n
	for i := len(w.log) - 1; i >= 0 && w.log[i].n == 0; i-- {
		w.log = w.log[:i]
		w.first = -instant(s.Per) // the entry before takes no more
	}
}

// calendar counts the units of one window of a place's clock. Units held when
// the window ends count in the next one too: nobody knows where the server
// counts them.
type calendar struct {
	clock *wallClock
	held  int64
	used  int64 // held included
	start int64 // of the window, in nanoseconds of the wall's clock
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
	if wall >= c.end {
		c.used = c.held
	}
	t := time.Unix(0, wall).In(s.Align)
	c.start = meters.WindowStart(t, s.Per).UnixNano()
	c.end = meters.WindowEnd(t, s.Per).UnixNano()
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
	c.used += min(n, math.MaxInt64-c.used)
	if held {
		c.held += n
	}
}

func (c *calendar) answered(now instant, s *rateSpec, n int64) {
	c.roll(now, s)
	c.held -= n
}

func (c *calendar) back(now instant, s *rateSpec, n int64, at instant, held bool) {
	c.roll(now, s)
	if held {
		c.held -= n
	} else if c.clock.zero+int64(at) < c.start {
		return
	}
	c.used = max(c.held, c.used-n)
}
