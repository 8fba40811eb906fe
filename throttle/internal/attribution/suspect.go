package attribution

import "github.com/weirhttp/weir/throttle/internal/meter"

// A suspect is a host that often says that it is overloaded. While few requests are
// under way its answers are tossed like a coin: if they prove to be chance, they say
// nothing of what may be sent. Until then it is taken for a limiter, if it is so often
// overloaded however few are under way. If it says as many 503s at a lower rate,
// it is none either.
type suspect struct {
	coin    Coin
	watched meter.Instant // answers to what was sent before are not tossed; zero: none is
	since   meter.Instant // zero: not taken for a limiter
	answers int           // that count; negative: so many do not
	busy    int
	not     meter.Instant // until then it is known to be no limiter
	chance  meter.Instant // until then it is known to refuse by chance
}

// random reports whether busy answers are known to be chance.
func (s *suspect) random(now meter.Instant) bool { return s != nil && now < s.chance }

// watch begins to toss, unless that was done.
func (o *Overload) watch(now meter.Instant) {
	if o.suspect == nil {
		o.suspect = new(suspect)
	}
	if s := o.suspect; s.watched == 0 {
		s.watched, s.coin = now, Coin{}
	}
}

// alternates reports whether there were good answers since watch.
func (s *suspect) alternates() bool { return s != nil && s.coin.begun }

// tossed takes in an answer to a request sent at sent, and reports whether it has
// shown that busy answers are chance.
func (o *Overload) tossed(now, sent meter.Instant, r Reply) bool {
	s := o.suspect
	switch {
	case s.watched == 0 || s.random(now):
		return false
	case o.share < calm:
		s.watched = 0
		return false
	case !r.Few || sent < s.watched || !s.coin.Toss(r.Busy):
		return false
	}
	s.watched, s.since = 0, 0
	s.not = now.Add(Remembered)
	s.chance = s.not
	return true
}

func (s *suspect) suspected() bool { return s != nil && s.since != 0 }

// begin returns s, made if need be, suspected from now on.
func (s *suspect) begin(now meter.Instant) *suspect {
	if s == nil {
		s = new(suspect)
	}
	s.since, s.answers, s.busy = now, -16, 0 // first the rate has to be found
	return s
}

// judge counts an answer. It reports whether the host has proved to be none.
func (s *suspect) judge(now meter.Instant, busy bool) bool {
	if !s.suspected() {
		return false
	}
	if s.answers++; busy && s.answers > 0 {
		s.busy++
	}
	none := s.busy >= 4 // a limiter whose rate is known refuses a few in a hundred
	if s.answers < 16 && !none {
		return false
	}
	s.answers, s.busy = 0, 0
	if none {
		s.since, s.not = 0, now.Add(Remembered)
	}
	return none
}
