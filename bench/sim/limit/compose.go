package limit

import (
	"slices"
	"time"
)

// Slots accept N requests at a time; the k-th of them is worked on for Work(k).
type Slots struct {
	N    int
	Work func(k int) time.Duration

	taken int
	ends  []time.Duration // of those under way, sorted
}

func (s *Slots) leave(at time.Duration) {
	for len(s.ends) > 0 && s.ends[0] <= at {
		s.ends = s.ends[1:]
	}
}

func (s *Slots) Take(at time.Duration) (time.Duration, bool) {
	if s.leave(at); len(s.ends) >= s.N {
		return 0, false
	}
	took := s.Work(s.taken)
	s.taken++
	i, _ := slices.BinarySearch(s.ends, at+took)
	s.ends = slices.Insert(s.ends, i, at+took)
	return took, true
}

func (s *Slots) Ready(at time.Duration) time.Duration {
	if s.leave(at); len(s.ends) >= s.N {
		return s.ends[len(s.ends)-s.N]
	}
	return at
}

func (s *Slots) State(at time.Duration) State {
	s.leave(at)
	wait := next(s, at)
	return State{Limit: s.N, Per: time.Second, Left: max(0, s.N-len(s.ends)), Next: wait, Reset: wait}
}

// All accepts what every one of its limiters accepts.
type All struct {
	Of []Limiter
	// Charged are those before the one that refuses: each is asked in turn.
	// Otherwise nothing is charged for a refused request.
	Charged bool
}

func (a *All) Take(at time.Duration) (took time.Duration, ok bool) {
	if !a.Charged && a.Ready(at) > at {
		return 0, false
	}
	for _, l := range a.Of {
		t, ok := l.Take(at)
		if !ok {
			return 0, false
		}
		took = max(took, t)
	}
	return took, true
}

func (a *All) Ready(at time.Duration) time.Duration {
	r := at
	for _, l := range a.Of {
		r = max(r, l.Ready(at))
	}
	return r
}

// State is that of the limiter that refuses for longest, or has least left.
func (a *All) State(at time.Duration) State {
	tightest := a.Of[0].State(at)
	for _, l := range a.Of[1:] {
		if s := l.State(at); s.Next > tightest.Next || s.Next == tightest.Next && s.Left < tightest.Left {
			tightest = s
		}
	}
	return tightest
}

// A Ban refuses everything for For after After refusals within Within.
type Ban struct {
	Of     Limiter
	After  int
	Within time.Duration
	For    time.Duration
	Again  bool // a request during the ban begins it anew

	refused []time.Duration
	until   time.Duration
}

func (b *Ban) Take(at time.Duration) (time.Duration, bool) {
	if at < b.until {
		if b.Again {
			b.until = at + b.For
		}
		return 0, false
	}
	took, ok := b.Of.Take(at)
	if ok {
		return took, true
	}
	b.refused = append(b.refused, at)
	for at-b.refused[0] > b.Within {
		b.refused = b.refused[1:]
	}
	if len(b.refused) >= b.After {
		b.refused, b.until = b.refused[:0], at+b.For
	}
	return 0, false
}

func (b *Ban) Ready(at time.Duration) time.Duration {
	if at < b.until {
		return b.until
	}
	return b.Of.Ready(at)
}

func (b *Ban) State(at time.Duration) State {
	s := b.Of.State(at)
	if at < b.until {
		s.Left, s.Next, s.Reset = 0, b.until-at, b.until-at
	}
	return s
}

// Shared is a limiter that others use too, at these instants.
type Shared struct {
	Of     Limiter
	Others []time.Duration // sorted
}

func (s *Shared) advance(at time.Duration) {
	for len(s.Others) > 0 && s.Others[0] <= at {
		s.Of.Take(s.Others[0])
		s.Others = s.Others[1:]
	}
}

func (s *Shared) Take(at time.Duration) (time.Duration, bool) {
	s.advance(at)
	return s.Of.Take(at)
}

func (s *Shared) Ready(at time.Duration) time.Duration {
	s.advance(at)
	r := s.Of.Ready(at)
	if r > at && len(s.Others) > 0 {
		r = min(r, s.Others[0])
	}
	return r
}

func (s *Shared) State(at time.Duration) State {
	s.advance(at)
	return s.Of.State(at)
}

// Changing is a limiter whose quota Change changes at At.
type Changing struct {
	Of     Limiter
	At     time.Duration
	Change func()

	done bool
}

func (c *Changing) advance(at time.Duration) {
	if !c.done && at >= c.At {
		c.Of.Ready(c.At) // what was gained until then was gained at the old rate
		c.Change()
		c.done = true
	}
}

func (c *Changing) Take(at time.Duration) (time.Duration, bool) {
	c.advance(at)
	return c.Of.Take(at)
}

func (c *Changing) Ready(at time.Duration) time.Duration {
	c.advance(at)
	r := c.Of.Ready(at)
	if r > at && !c.done {
		r = min(r, c.At)
	}
	return r
}

func (c *Changing) State(at time.Duration) State {
	c.advance(at)
	return c.Of.State(at)
}

// Instances are servers behind a balancer, each with a limiter of its own:
// Pick says which of them the n-th request meets.
type Instances struct {
	Of   []Limiter
	Pick func(n int) int

	n, last int
}

func (s *Instances) Take(at time.Duration) (time.Duration, bool) {
	s.last = s.Pick(s.n)
	s.n++
	return s.Of[s.last].Take(at)
}

// Best takes from any instance that accepts: what the luckiest would meet.
func (s *Instances) Best(at time.Duration) (time.Duration, bool) {
	for _, l := range s.Of {
		if l.Ready(at) <= at {
			return l.Take(at)
		}
	}
	return 0, false
}

// Ready is when the first of them accepts.
func (s *Instances) Ready(at time.Duration) time.Duration {
	r := s.Of[0].Ready(at)
	for _, l := range s.Of[1:] {
		r = min(r, l.Ready(at))
	}
	return r
}

// State is that of the instance that answered last.
func (s *Instances) State(at time.Duration) State { return s.Of[s.last].State(at) }
