package limit

import (
	"math"
	"time"
)

// A Counter is the sliding window of two counters: it takes what the last
// window of length Per accepted for spread evenly, and refuses when that share
// of it and the current window come to N.
type Counter struct {
	N       int
	Per     time.Duration
	Phase   time.Duration
	Counted bool // refused requests count too

	now       int64
	prev, cur int
}

func (c *Counter) roll(at time.Duration) {
	switch n := window(at, c.Phase, c.Per); n - c.now {
	case 0:
	case 1:
		c.now, c.prev, c.cur = n, c.cur, 0
	default:
		c.now, c.prev, c.cur = n, 0, 0
	}
}

// crumb is the difference between full and not full: no rounding of an instant
// to a nanosecond may decide it.
const crumb = 1e-6

// estimate is what the window that ends at this instant of window now holds.
func (c *Counter) estimate(at time.Duration, now int64, prev, cur int) float64 {
	gone := float64(at-begin(now, c.Phase, c.Per)) / float64(c.Per)
	return float64(prev)*(1-gone) + float64(cur)
}

func (c *Counter) full(at time.Duration, now int64, prev, cur int) bool {
	return c.estimate(at, now, prev, cur) > float64(c.N)-crumb
}

func (c *Counter) Take(at time.Duration) (time.Duration, bool) {
	c.roll(at)
	ok := !c.full(at, c.now, c.prev, c.cur)
	if ok || c.Counted {
		c.cur++
	}
	return 0, ok
}

func (c *Counter) Ready(at time.Duration) time.Duration {
	c.roll(at)
	for now, prev, cur := c.now, c.prev, c.cur; ; now, prev, cur = now+1, cur, 0 {
		at = max(at, begin(now, c.Phase, c.Per))
		if !c.full(at, now, prev, cur) {
			return at
		}
		if cur >= c.N {
			continue
		}
		gone := 1 - (float64(c.N-cur)-crumb)/float64(prev)
		t := begin(now, c.Phase, c.Per) + time.Duration(math.Ceil(gone*float64(c.Per)))
		for c.full(t, now, prev, cur) {
			t += time.Duration(1 + float64(c.Per)*crumb/float64(prev))
		}
		if t < begin(now+1, c.Phase, c.Per) {
			return max(at, t)
		}
	}
}

func (c *Counter) State(at time.Duration) State {
	c.roll(at)
	left := math.Ceil(float64(c.N) - crumb - c.estimate(at, c.now, c.prev, c.cur))
	return State{Limit: c.N, Per: c.Per, Left: int(max(0, left)), Next: next(c, at),
		Reset: begin(c.now+1, c.Phase, c.Per) - at}
}
