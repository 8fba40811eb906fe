package limit

import (
	"math"
	"time"
)

// A Bucket accepts a request while fewer than Size are in it; Rate of them
// leave it per second. That is the token bucket, GCRA, and nginx's limit_req,
// whose burst is Size-1.
type Bucket struct {
	Rate, Size float64
	// Paced holds up each answer until those before it have left, as limit_req
	// does without nodelay.
	Paced bool

	level float64
	last  time.Duration
}

// epsilon keeps a request from being refused for a rounding error. The level
// of the fastest bucket changes five hundred times as much in a nanosecond.
const epsilon = 1e-9

func (b *Bucket) drain(at time.Duration) {
	b.level = max(0, b.level-(at-b.last).Seconds()*b.Rate)
	b.last = at
}

func (b *Bucket) Take(at time.Duration) (time.Duration, bool) {
	if b.Ready(at) > at {
		return 0, false
	}
	b.level++
	if b.Paced {
		return span(max(0, b.level-1) / b.Rate), true
	}
	return 0, true
}

func (b *Bucket) Ready(at time.Duration) time.Duration {
	b.drain(at)
	if over := b.level + 1 - b.Size; over > epsilon {
		return at + span(over/b.Rate)
	}
	return at
}

func (b *Bucket) State(at time.Duration) State {
	b.drain(at)
	return State{Limit: int(b.Size), Per: span(b.Size / b.Rate), Left: max(0, int(b.Size-b.level+epsilon)),
		Next: next(b, at), Reset: span(b.level / b.Rate)}
}

// span is that many seconds, rounded up.
func span(s float64) time.Duration { return time.Duration(math.Ceil(s * 1e9)) }

// A Stepped bucket holds at most Size tokens and gains Add of them every Every,
// all at once, first at Phase.
type Stepped struct {
	Add, Size    int
	Every, Phase time.Duration

	used int
	seen int64 // steps that have been added
	on   bool
}

func (s *Stepped) fill(at time.Duration) {
	n := window(at, s.Phase, s.Every)
	if s.on {
		s.used = int(max(0, int64(s.used)-(n-s.seen)*int64(s.Add)))
	}
	s.seen, s.on = n, true
}

func (s *Stepped) Take(at time.Duration) (time.Duration, bool) {
	if s.fill(at); s.used >= s.Size {
		return 0, false
	}
	s.used++
	return 0, true
}

func (s *Stepped) Ready(at time.Duration) time.Duration {
	if s.fill(at); s.used >= s.Size {
		return begin(s.seen+1, s.Phase, s.Every)
	}
	return at
}

func (s *Stepped) State(at time.Duration) State {
	s.fill(at)
	return State{Limit: s.Size, Per: s.Every, Left: s.Size - s.used, Next: next(s, at),
		Reset: begin(s.seen+1, s.Phase, s.Every) - at}
}
