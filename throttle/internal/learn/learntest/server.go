package learntest

import (
	"math/rand/v2"
	"slices"
)

// A server counts with its limiters, perhaps together with other clients, and
// may change its mind or shut a client out.
type server struct {
	limits   []limiter
	spread   int     // of instances with limits of their own: request i goes to instance i%spread
	atOnce   int     // requests at a time; zero: no limit
	busy     int     // under way
	block    Instant // after a refusal all are refused for so long
	rearmed  bool    // each refusal while blocked begins the block anew
	blocked  Instant // until then
	patience int     // refusals in a row until the block
	strikes  int
	change   Instant // when the quota changes; zero: never
	factor   float64

	others float64 // requests of others a second
	next   Instant // of them
	rng    *rand.Rand
	seq    int // of requests that arrived
}

func (s *server) clone(seed uint64) *server {
	c := *s
	c.limits = slices.Clone(s.limits)
	for i := range c.limits {
		c.limits[i] = c.limits[i].clone()
	}
	c.rng = rand.New(rand.NewPCG(seed, 77))
	return &c
}

// bound are the limiters that the next request meets.
func (s *server) bound() []limiter {
	if s.spread > 1 {
		i := s.seq % s.spread
		return s.limits[i : i+1]
	}
	return s.limits
}

// settle lets happen what happens without the client until at.
func (s *server) settle(at Instant) {
	if s.change > 0 && at >= s.change {
		for _, l := range s.limits {
			l.room(s.change) // the old quota held until then
			l.scale(s.factor)
		}
		s.change = 0
	}
	for s.others > 0 && s.next <= at {
		for _, l := range s.bound() {
			l.take(s.next, l.room(s.next) <= s.next)
		}
		s.next += Instant(s.rng.ExpFloat64() / s.others * 1e9)
	}
}

// room is when the next request would be accepted, if nothing else arrives.
// With a limit on requests at a time it may be forever: until one ends.
func (s *server) room(at Instant) Instant {
	s.settle(at)
	if s.atOnce > 0 && s.busy >= s.atOnce {
		return forever
	}
	r := max(at, s.blocked)
	for _, l := range s.bound() {
		r = max(r, l.room(at))
	}
	return r
}

// arrive judges a request. cause is the limiter that refused it; nil: none did.
func (s *server) arrive(at Instant) (accepted bool, cause limiter) {
	accepted = s.room(at) <= at
	for _, l := range s.bound() {
		if !accepted && cause == nil && l.room(at) > at {
			cause = l
		}
	}
	for _, l := range s.bound() {
		l.take(at, accepted)
	}
	s.seq++
	switch {
	case accepted:
		s.busy++
		s.strikes = 0
	case s.block > 0:
		s.strikes++
		if s.strikes >= s.patience && (s.rearmed || at >= s.blocked) {
			s.blocked = at + s.block
		}
	}
	return accepted, cause
}

func (s *server) done() { s.busy-- }
