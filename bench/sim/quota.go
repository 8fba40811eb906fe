package sim

import (
	"math"
	"time"
)

// A quota decides which requests a server accepts. Its methods are called
// under the server's lock with times that never step back.
type quota interface {
	// take spends one unit if there is one.
	take(now time.Time) bool
	// state is what the quota would say of itself: units left, the time until
	// one more is there (zero if there are some) and until all are.
	state(now time.Time) (left int, next, full time.Duration)
	// stated is the limit as documentation would put it: n per d.
	stated() (n int, d time.Duration)
}

// bucket holds at most size tokens and gains rate of them per second.
type bucket struct {
	rate, size float64
	tokens     float64
	last       time.Time
}

func newBucket(rate, size float64) *bucket { return &bucket{rate: rate, size: size, tokens: size} }

func (b *bucket) fill(now time.Time) {
	if !b.last.IsZero() {
		b.tokens = min(b.size, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	}
	b.last = now
}

func (b *bucket) take(now time.Time) bool {
	b.fill(now)
	if b.tokens < 1-1e-9 {
		return false
	}
	b.tokens--
	return true
}

func (b *bucket) state(now time.Time) (int, time.Duration, time.Duration) {
	b.fill(now)
	return int(b.tokens + 1e-9), seconds(max(0, 1-b.tokens) / b.rate), seconds((b.size - b.tokens) / b.rate)
}

func (b *bucket) stated() (int, time.Duration) { return int(math.Ceil(b.rate)), time.Second }

// fixed gives n units in each window of length per.
type fixed struct {
	n, used int
	per     time.Duration
	phase   time.Duration // of the first window that is gone when it is first asked
	ends    time.Time
}

func (f *fixed) roll(now time.Time) {
	if f.ends.IsZero() {
		f.ends = now.Add(f.per - f.phase)
	}
	for !now.Before(f.ends) {
		f.ends, f.used = f.ends.Add(f.per), 0
	}
}

func (f *fixed) take(now time.Time) bool {
	f.roll(now)
	if f.used >= f.n {
		return false
	}
	f.used++
	return true
}

func (f *fixed) state(now time.Time) (int, time.Duration, time.Duration) {
	f.roll(now)
	rest := f.ends.Sub(now)
	if f.used < f.n {
		return f.n - f.used, 0, rest
	}
	return 0, rest, rest
}

func (f *fixed) stated() (int, time.Duration) { return f.n, f.per }

// sliding lets at most n pass in any window of length per.
type sliding struct {
	n   int
	per time.Duration
	log []time.Time
}

func (s *sliding) expire(now time.Time) {
	for len(s.log) > 0 && now.Sub(s.log[0]) >= s.per {
		s.log = s.log[1:]
	}
}

func (s *sliding) take(now time.Time) bool {
	s.expire(now)
	if len(s.log) >= s.n {
		return false
	}
	s.log = append(s.log, now)
	return true
}

func (s *sliding) state(now time.Time) (int, time.Duration, time.Duration) {
	s.expire(now)
	if len(s.log) == 0 {
		return s.n, 0, 0
	}
	next := time.Duration(0)
	if len(s.log) >= s.n {
		next = s.per - now.Sub(s.log[0])
	}
	return s.n - len(s.log), next, s.per - now.Sub(s.log[len(s.log)-1])
}

func (s *sliding) stated() (int, time.Duration) { return s.n, s.per }

// leaky is nginx's limit_req: an excess that drains at rate, refused above burst.
type leaky struct {
	rate, burst float64
	excess      float64
	last        time.Time
}

func (l *leaky) drain(now time.Time) {
	if !l.last.IsZero() {
		l.excess = max(0, l.excess-now.Sub(l.last).Seconds()*l.rate)
	}
	l.last = now
}

func (l *leaky) take(now time.Time) bool {
	l.drain(now)
	if l.excess > l.burst {
		return false
	}
	l.excess++
	return true
}

func (l *leaky) state(now time.Time) (int, time.Duration, time.Duration) {
	l.drain(now)
	return max(0, int(l.burst-l.excess)+1), seconds(max(0, l.excess-l.burst) / l.rate), seconds(l.excess / l.rate)
}

func (l *leaky) stated() (int, time.Duration) { return int(l.rate), time.Second }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
