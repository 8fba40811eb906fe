package throttle

import "time"

// A limit that is short is drawn from in turns: who has drawn more than an equal part
// of what all drew lets the others go first, for a while.

const (
	// mostTurn is how long at most, and turnPart the part of a window. The others may
	// hear of a new one up to a second later, as resets are told in whole seconds,
	// and a little.
	mostTurn = 1250 * time.Millisecond
	turnPart = 4
	// mostLead is how far ahead or behind a process may be, in equal parts of the
	// limit. What it drew alone, or did not need, is forgotten beyond.
	mostLead = 2
)

// turn is what a quota knows of whose turn it is.
type turn struct {
	lead  float64   // units that this process drew beyond an equal part
	count int64     // when that was reckoned
	held  time.Time // since when others go first; zero: they do not
	short time.Time // when there was last too little
}

// draw takes in that this process drew units, or gave them back if they are negative.
func (s *shared) draw(units float64) { s.turn.lead += units }

// lead is how many units this process is ahead of others.
func (q *quota) lead() float64 {
	s, k := &q.shared.turn, float64(q.terms.members)
	n, _ := q.shared.tally.Count()
	s.lead -= float64(n-s.count) / k
	s.count = n
	most := mostLead * max(1, q.sizeOr(0)/k)
	s.lead = min(max(s.lead, -most), most)
	return s.lead
}

// lacks notes that there is too little now.
func (s *shared) lacks(now time.Time) { s.turn.short, s.turn.held = now, time.Time{} }

// turn is how long cost units of those that are left have to wait until others had
// their turn.
func (q *quota) turn(now time.Time, cost, level float64) time.Duration {
	s := &q.shared
	if s.tally == nil || q.terms.members == 0 || s.turn.short.IsZero() || now.Sub(s.turn.short) > 2*s.span {
		return 0
	}
	if s.alone {
		level = q.sizeOr(level)
	}
	if q.lead()+cost-level/float64(q.terms.members) < 1 {
		return 0
	}
	if s.turn.held.IsZero() {
		s.turn.held = now
	}
	return max(0, s.turn.held.Add(min(s.span/turnPart, mostTurn)).Sub(now))
}
