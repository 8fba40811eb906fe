package stated

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What an answer says is left only the process knows that got it. The others would wait
// for the reset that they were told, while that one draws what flows into a bucket, or
// what a window holds that began up to a second before. So a mark in the Store tells all
// how far the count may go. It is only raised: of a limit that comes back nobody has to
// be told that it is spent.

const (
	// markMargin is the part of a limit by which a mark stays below what was said, as that
	// may have been said before requests arrived that were booked earlier. Without it
	// sixteen were refused twice as often.
	markMargin = 8
	// markStep is the part of a limit by which a mark has to rise to be told: four calls
	// for all that there is. With a sixteenth, doubts were told, of which a mark keeps
	// the largest.
	markStep = 4
	// windowPart is the part of a limit that nothing but a new window brings at once. A mark
	// rises by seven eighths then; with half of it, buckets were taken for windows.
	windowPart = 0.75
)

// marks is what a quota knows of its mark.
type marks struct {
	tally *fleet.Tally // nil: there is none yet
	taken int64        // how far the mark was when what is left was known
	raise func(to int64)
	ask   func() // asks the Store how far the count and the mark are
	asked meter.Instant
}

// Mark is the mark of q's tally t, made if it had none. raise is to tell the Store that it
// was raised; asks makes what asks it how far the count and the mark are.
func (q *Limit) Mark(t *fleet.Tally, raise func(mark *fleet.Tally, to int64), asks func(mark *fleet.Tally) func()) *fleet.Tally {
	m := &q.shared.marks
	if m.tally == nil {
		mark := t.Mark()
		m.tally = mark
		m.raise = func(to int64) { raise(mark, to) }
		m.ask = asks(mark)
	}
	return m.tally
}

// tell lets the other processes know how far the count may go, if that is news. While
// more of q's requests are under way, lull is false, an answer may have overtaken many.
func (q *Limit) tell(most int64, lull bool) {
	s, size := &q.shared, q.sizeOr(0)
	if s.marks.tally == nil || s.alone {
		return
	}
	n, _ := s.tally.Raised(s.marks.tally)
	s.marks.taken = max(n, most)
	if most -= int64(size / markMargin); lull && float64(most-n) >= max(2, size/markStep) {
		s.marks.raise(most)
	}
}

// learns takes in that others were told of more than q takes to be left.
func (q *Limit) learns(now meter.Instant) {
	s := &q.shared
	if s.marks.tally == nil || !s.based || s.alone || q.fresh.IsOpen() {
		return
	}
	if n, known := s.tally.Raised(s.marks.tally); known && n > s.marks.taken {
		s.marks.taken = n
		if left := float64(n - s.base); left > q.left {
			q.began(now, left-q.left)
			q.left, q.basis = left, now
		}
	}
}

// watch asks the Store what others did, if it is time to, while requests wait for d, and
// returns for how long to wait until that is seen to again.
func (q *Limit) watch(now meter.Instant, d time.Duration) time.Duration {
	s := &q.shared
	if s.marks.tally == nil || s.alone || !s.based || q.terms.Members == 0 || !q.waited() {
		return d
	}
	pause := max(fleet.AskPause(q.terms.Members), s.span/slidePart) // of a long window a small part
	next := s.marks.asked.Add(pause)
	if next <= now {
		s.marks.asked, next = now, now.Add(pause)
		s.marks.ask()
	}
	return min(d, next.Sub(now))
}
