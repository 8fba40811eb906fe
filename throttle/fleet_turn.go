package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
)

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

// turn is what a process knows of whose turn it is.
type turn struct {
	lead   float64   // units that this process drew beyond an equal part
	count  int64     // when that was reckoned
	held   time.Time // since when others go first; zero: they do not
	others int64     // units that these had drawn then
	quiet  int       // times in a row that they drew none meanwhile
	leave  float64   // by how much it may be ahead until there is too little again
	short  time.Time // when there was last too little
}

// draw takes in that this process drew units, or gave them back if they are negative.
func (s *shared) draw(units float64) { s.turn.lead += units }

// ahead is how many units this process is ahead of the others of k, of a limit of that
// size that t counts.
func (s *turn) ahead(t *fleet.Tally, k, size float64) float64 {
	n, _ := t.Count()
	s.lead -= float64(n-s.count) / k
	s.count = n
	most := mostLead * max(1, size/k)
	s.lead = min(max(s.lead, -most), most)
	return s.lead
}

// wait is how long one who is ahead, by more than a unit beyond its share of what is
// left, has to wait until others had their turn, of a window that lasts span. Then it may
// have another share. Each time that nobody else took anything meanwhile it waits half as
// long. others is what these have drawn in all.
func (s *turn) wait(now time.Time, ahead, share float64, span time.Duration, others int64) time.Duration {
	if ahead-s.leave < 1 {
		return 0
	}
	if s.held.IsZero() {
		s.held, s.others = now, others
	}
	if d := s.held.Add(min(span/turnPart, mostTurn) >> min(s.quiet, 16)).Sub(now); d > 0 {
		return d
	}
	if s.quiet++; others > s.others {
		s.quiet = 0
	}
	s.held, s.leave = time.Time{}, ahead+share
	return 0
}

// lacks notes that there is too little now.
func (s *turn) lacks(now time.Time) { s.short, s.held, s.leave, s.quiet = now, time.Time{}, 0, 0 }

// lacks notes that there is too little now.
func (s *shared) lacks(now time.Time) { s.turn.lacks(now) }

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
	k := float64(q.terms.members)
	others, _ := s.tally.Others()
	return s.turn.wait(now, s.turn.ahead(s.tally, k, q.sizeOr(0))+cost-level/k, max(1, level/k), s.span, others)
}
