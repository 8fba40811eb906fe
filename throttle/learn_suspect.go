package throttle

import "time"

// suspectPause is the longest pause that is guessed while it is not clear
// whether a pause is of any use.
const suspectPause = time.Second

// limiter reports whether a host that says it is overloaded rather limits us:
// it serves some, and refuses most however few are under way.
func (k *kind) limiter(now time.Time) bool {
	return k.busy >= 0.5 && k.serves(now) && (k.suspect == nil || !now.Before(k.suspect.not))
}

// serves reports whether there was a good answer lately: no outage, then. A
// limiter that has served nothing for a second has not been asked often since.
func (k *kind) serves(now time.Time) bool {
	ago := time.Duration(instantOf(now) - k.served)
	return k.served != 0 && (ago < time.Second || ago < 5*time.Second && k.streak < 5)
}

// A suspect is a host that was taken for a limiter because of its 503s. If it
// says as many at a lower rate, it just fails often.
type suspect struct {
	since   time.Time // zero: not suspected
	answers int       // that count; negative: so many do not
	busy    int
	not     time.Time // until then it is known to be none
}

func (s *suspect) suspected() bool { return s != nil && !s.since.IsZero() }

// begin returns s, made if need be, suspected from now on.
func (s *suspect) begin(now time.Time) *suspect {
	if s == nil {
		s = new(suspect)
	}
	s.since, s.answers, s.busy = now, -16, 0 // first the rate has to be found
	return s
}

// judge counts an answer. It reports whether the host has proved to be none.
func (s *suspect) judge(now time.Time, busy bool) bool {
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
		s.since, s.not = time.Time{}, now.Add(forgetRate)
	}
	return none
}
