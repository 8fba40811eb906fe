package limit

import "time"

// A Fixed window accepts N requests in each Per.
type Fixed struct {
	N     int
	Per   time.Duration
	Phase time.Duration // when a window begins; not used with First
	First bool          // a window begins with the first request after the last one's end
	// Again begins the window anew with each refusal. It needs First.
	Again bool

	used int
	ends time.Duration
}

func (f *Fixed) roll(at time.Duration) {
	if at < f.ends {
		return
	}
	f.used, f.ends = 0, 0
	if !f.First {
		f.ends = begin(window(at, f.Phase, f.Per)+1, f.Phase, f.Per)
	}
}

func (f *Fixed) Take(at time.Duration) (time.Duration, bool) {
	f.roll(at)
	if f.ends == 0 {
		f.ends = at + f.Per
	}
	if f.used >= f.N {
		if f.Again {
			f.ends = at + f.Per
		}
		return 0, false
	}
	f.used++
	return 0, true
}

func (f *Fixed) Ready(at time.Duration) time.Duration {
	if f.roll(at); f.used >= f.N {
		return f.ends
	}
	return at
}

func (f *Fixed) State(at time.Duration) State {
	f.roll(at)
	return State{Limit: f.N, Per: f.Per, Left: max(0, f.N-f.used), Next: next(f, at), Reset: max(0, f.ends-at)}
}

// A Log accepts N requests in any window of length Per.
type Log struct {
	N       int
	Per     time.Duration
	Counted bool // refused requests count too

	log []time.Duration
}

func (l *Log) expire(at time.Duration) {
	for len(l.log) > 0 && at-l.log[0] >= l.Per {
		l.log = l.log[1:]
	}
}

func (l *Log) Take(at time.Duration) (time.Duration, bool) {
	l.expire(at)
	ok := len(l.log) < l.N
	if ok || l.Counted {
		l.log = append(l.log, at)
	}
	return 0, ok
}

func (l *Log) Ready(at time.Duration) time.Duration {
	if l.expire(at); len(l.log) >= l.N {
		return l.log[len(l.log)-l.N] + l.Per
	}
	return at
}

func (l *Log) State(at time.Duration) State {
	l.expire(at)
	s := State{Limit: l.N, Per: l.Per, Left: max(0, l.N-len(l.log)), Next: next(l, at)}
	if len(l.log) > 0 {
		s.Reset = max(s.Next, l.log[0]+l.Per-at)
	}
	return s
}

// Cells is a sliding window of coarse grain: what was accepted is counted in
// M cells of Per/M, and the current cell and the M-1 before it may hold N.
type Cells struct {
	N, M  int
	Per   time.Duration
	Phase time.Duration

	cells map[int64]int
}

func (c *Cells) grain() time.Duration { return c.Per / time.Duration(c.M) }

// count forgets old cells and returns what the others hold.
func (c *Cells) count(at time.Duration) (now int64, n int) {
	if c.cells == nil {
		c.cells = map[int64]int{}
	}
	now = window(at, c.Phase, c.grain())
	for i, k := range c.cells {
		if i <= now-int64(c.M) {
			delete(c.cells, i)
		} else {
			n += k
		}
	}
	return now, n
}

func (c *Cells) Take(at time.Duration) (time.Duration, bool) {
	now, n := c.count(at)
	if n >= c.N {
		return 0, false
	}
	c.cells[now]++
	return 0, true
}

func (c *Cells) Ready(at time.Duration) time.Duration {
	now, n := c.count(at)
	for first := now - int64(c.M) + 1; n >= c.N; first++ {
		n -= c.cells[first]
		at = begin(first+int64(c.M), c.Phase, c.grain())
	}
	return at
}

func (c *Cells) State(at time.Duration) State {
	now, n := c.count(at)
	return State{Limit: c.N, Per: c.Per, Left: max(0, c.N-n), Next: next(c, at),
		Reset: begin(now+1, c.Phase, c.grain()) - at}
}
