package attribution

import "github.com/weirhttp/weir/throttle/internal/meter"

// A suspect is a host that has said that it is overloaded. If that is likely chance, it
// says nothing of how many may be under way; if that is sure, it has no limit at all.
// Until then it is taken for a limiter, if it is so often overloaded however few are
// under way. If it says as many 503s at a lower rate, it is none either.
type suspect struct {
	coin    Coin
	since   meter.Instant // zero: not taken for a limiter
	answers int           // that count; negative: so many do not
	busy    int
	not     meter.Instant // until then it is known to be no limiter
	chance  meter.Instant // until then it is known to refuse by chance
}

// random reports whether busy answers are known to be chance.
func (s *suspect) random(now meter.Instant) bool { return s != nil && now < s.chance }

// alternates reports whether it was good again after it was busy.
func (s *suspect) alternates() bool { return s != nil && s.coin.all.good > 0 }

// tossed takes in an answer to a request sent at sent, and returns what it has shown.
// Later answers may show that busy ones are no chance.
func (s *suspect) tossed(now, sent meter.Instant, r Reply) Verdict {
	s.coin.Toss(sent, r.Load, r.Busy)
	switch {
	case s.random(now) && s.coin.Unlikely():
		s.chance, s.not = 0, 0
	case s.random(now) && now >= s.not && s.coin.Sure():
		s.not = now.Add(Remembered)
		return NoLimiter
	case !s.random(now) && s.coin.Likelier():
		s.chance = now.Add(Remembered)
		return Chance
	}
	return Open
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
