package learn

import (
	"math"
	"time"
)

// A family is a kind of limiter that people write.
type family uint8

const (
	bucket      family = iota // a level that flows off at a rate: token bucket, GCRA, nginx's limit_req
	slidingLog                // at most size in any window
	windowFirst               // a window begins with the first request after the end of the last window
	windowClock               // windows begin at multiples of the period, by some clock
	counter                   // as windowClock, but the window before counts, too, by the part of it that is less than a period ago
	atOnce                    // at most size requests under way
)

// A shape is a limiter without its size: what it counts, and for how long.
type shape struct {
	family  family
	refused bool    // refused requests count
	again   bool    // one that is refused during a ban begins it anew
	per     Instant // the length of a window; for a bucket, how long one unit takes to flow off
	phase   Instant // windows by a clock begin at this instant and at multiples of per from it
	ban     Instant // for so long after a refusal everything is refused; zero: there is no ban
}

// A state is what a limiter of a shape has counted. It does not depend on the limiter's size.
type state struct {
	level, prev float64 // units in use; prev: those of the window before, of a counter
	start       Instant // when the window began; for a bucket, the time of level
	head        int32   // index of the first entry of the log that counts, of a sliding log
	open        bool    // a window has begun
	barred      Instant // until when a ban refuses everything; zero: there is no ban now
	spare       float64 // units that could have flowed off while the bucket was empty: so many of those that were in it before the log began are gone
}

// begin is the state before the first request.
func (s *shape) begin(at Instant) state {
	st := state{start: at}
	if s.family == windowClock || s.family == counter {
		st.start, st.open = at-mod(at-s.phase, s.per), true
	}
	return st
}

func mod(a, b Instant) Instant {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// pass brings st to the instant at. half is how long a request takes to arrive.
func (s *shape) pass(st *state, at Instant, log []entry, half Instant) {
	if s.ban > 0 && st.barred != 0 && at >= st.barred {
		st.barred = 0
		if s.family == windowFirst { // such servers begin a new window after a ban
			st.open, st.level = false, 0
		}
	}
	switch s.family {
	case bucket:
		if at > st.start {
			st.level, st.start = s.flowed(st, at), at
			if st.level < 0 {
				st.spare, st.level = st.spare-st.level, 0
			}
		}
	case slidingLog:
		for int(st.head) < len(log) && log[st.head].last+half+s.per <= at {
			st.level -= log[st.head].units(s.refused)
			st.head++
		}
	case atOnce:
	case windowFirst:
		if st.open && at >= st.start+s.per {
			st.open, st.level = false, 0
		}
	default:
		if at-st.start < s.per {
			return
		}
		n := (at - st.start) / s.per
		st.prev = st.level
		if n > 1 {
			st.prev = 0
		}
		st.level, st.start = 0, st.start+n*s.per
	}
}

// add counts n units that arrive at at, to which pass has brought st.
func (s *shape) add(st *state, at Instant, n float64) {
	if s.family == atOnce {
		return
	}
	if s.family == windowFirst && !st.open && n > 0 {
		st.open, st.start = true, at
	}
	st.level += n
}

// takeBack is the reverse of add for n units of entry i of the log, which arrived at at and
// were refused.
func (s *shape) takeBack(st *state, i int, at Instant, n float64) {
	switch {
	case s.refused || s.family == atOnce || s.family == slidingLog && i < int(st.head):
	case s.family == bucket || s.family == slidingLog || at >= st.start:
		st.level = max(0, st.level-n)
		st.open = st.open && (s.family != windowFirst || st.level > 0)
	case s.family == counter && at+s.per >= st.start:
		st.prev = max(0, st.prev-n)
	}
}

// spread counts the units of an entry. They are taken to have come evenly, so that a merged entry
// never shows a higher level than there was.
func (s *shape) spread(st *state, l *entry, log []entry, half Instant) {
	units, at, last := int(l.under)+int(l.taken), l.at+half, l.last+half
	if units <= 1 || last <= at || s.family == atOnce {
		s.pass(st, last, log, half)
		s.add(st, last, float64(units))
		return
	}
	n, span := float64(units), float64(last-at)
	s.pass(st, at, log, half)
	switch s.family {
	case bucket:
		flowed := span / float64(s.per)
		st.level = max(1, st.level+n-flowed, n-flowed*n/(n-1))
		st.start = max(st.start, last)
	case slidingLog:
		s.pass(st, last, log, half)
		st.level += n
	case windowFirst:
		if !st.open {
			st.open, st.start = true, at
		}
		if gone := (last - st.start) / s.per; gone > 0 {
			st.start, st.level = st.start+gone*s.per, 0
			n = within(n, span, float64(last-st.start))
		}
		st.level += n
	default:
		old := st.start
		s.pass(st, last, log, half)
		if st.start > old {
			two := within(n, span, float64(last-st.start+s.per))
			n = within(n, span, float64(last-st.start))
			st.prev += two - n
		}
		st.level += n
	}
}

// within is how many of n units that came evenly within span came in its last part.
func within(n, span, part float64) float64 {
	return min(n, 1+math.Floor(part/span*(n-1)))
}

// inUse is how many units count at at, to which pass has brought st.
func (s *shape) inUse(st *state, at Instant) float64 {
	if s.family == counter && st.prev > 0 {
		return st.level + st.prev*(1-float64(at-st.start)/float64(s.per))
	}
	return st.level
}

// refuses notes that a request which arrived at at was refused. It reports whether a ban
// explains that. slack is the doubt about when it arrived.
func (s *shape) refuses(st *state, at, slack Instant) bool {
	if s.ban == 0 {
		return false
	}
	barred := at < st.barred+slack
	if !barred || s.again {
		st.barred = max(st.barred, at+s.ban)
	}
	return barred
}

// flowed is the level of a bucket at at. It is below zero by what could have flowed off while
// the bucket was empty.
func (s *shape) flowed(st *state, at Instant) float64 {
	return st.level - float64(at-st.start)/float64(s.per)
}

// peek is inUse at another instant; it does not change st. For a bucket at an earlier instant it
// is an estimate, and for other families it is that of the state's own instant.
func (s *shape) peek(st *state, at Instant, log []entry, half Instant) float64 {
	switch {
	case s.family == bucket && at < st.start:
		return st.level + float64(st.start-at)/float64(s.per)*min(1, st.level)
	case s.family == bucket:
		return max(0, s.flowed(st, at))
	}
	if s.stays(st, at, log, half) {
		return s.inUse(st, max(at, st.start))
	}
	then := *st
	s.pass(&then, at, log, half)
	return s.inUse(&then, max(at, then.start))
}

// stays reports whether pass, of a shape that is no bucket, would change nothing. Mostly so, and a
// copy of the state would take longer.
func (s *shape) stays(st *state, at Instant, log []entry, half Instant) bool {
	switch {
	case st.barred != 0:
		return false
	case s.family == slidingLog:
		return int(st.head) >= len(log) || log[st.head].last+half+s.per > at
	}
	return at-st.start < s.per || s.family == atOnce
}

// almost is by how much a level may exceed a size, because of errors of rounding.
const almost = 1e-6

// ready is when there is room for one more, if nothing else comes.
func (s *shape) ready(st state, size float64, at Instant, log []entry, half Instant) Instant {
	s.pass(&st, at, log, half)
	if st.barred > at {
		at = st.barred
		s.pass(&st, at, log, half)
	}
	if s.family == atOnce {
		return at + s.per // when one that is under way ends
	}
	over := s.inUse(&st, max(at, st.start)) + 1 - size
	if over <= almost || st.level == 0 && st.prev == 0 {
		return at
	}
	switch s.family {
	case bucket:
		return at + Instant(math.Ceil(over*float64(s.per)))
	case slidingLog:
		for i := int(st.head); i < len(log); i++ {
			if over -= log[i].units(s.refused); over <= almost {
				return log[i].last + half + s.per
			}
		}
		return at + s.per
	case counter:
		return s.readyCounter(&st, size, at)
	}
	return st.start + s.per
}

// readyCounter is ready for a counter: units of the window before count less and less within
// this window, and those of this one within the next.
func (s *shape) readyCounter(st *state, size float64, at Instant) Instant {
	per := float64(s.per)
	if free := size - 1 - st.level; free >= 0 {
		return max(at, st.start+Instant(per*(1-min(1, free/st.prev)))+1)
	}
	return st.start + s.per + Instant(per*max(0, 1-max(0, size-1)/st.level)) + 1
}

// rate is how many units a second a limiter of that size accepts in the long run, if each is sent as
// soon as there is room. A counter accepts one less in each window then: its last unit has room
// when the window ends. One of a single unit has to wait until a window without one is over.
func (s *shape) rate(size float64) float64 {
	switch s.family {
	case bucket:
		return float64(time.Second) / float64(s.per)
	case counter:
		size = max(.5, size-1)
	}
	return size * float64(time.Second) / float64(s.per)
}

// memory is for how long a request matters to a limiter of that size.
func (s *shape) memory(size float64) Instant {
	switch s.family {
	case bucket:
		return Instant(min(1e17, size*float64(s.per)))
	case atOnce:
		return 0
	case counter:
		return 2 * s.per
	}
	return s.per
}
