package stated

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Only the process that gets an answer knows what it says is left. The others would wait for
// the reset that they know, while this one draws what comes back into a bucket, or what there
// is in a window that began up to a second earlier. So a mark in the Store tells all processes
// how far the count may go. It is only raised: processes need not be told by it that a limit is
// spent.

const (
	// markMargin is the part of a limit by which a mark is lower than an answer says, at
	// least, as requests may reach the server after that answer although they were booked
	// earlier. Without it a fleet of 16 was refused twice as often.
	markMargin = 8
	// markStep is the part of a limit by which a mark has to rise to be written: so a whole
	// limit takes four calls of the Store. With a sixteenth, errors of answers were written,
	// and as a mark is only raised the largest of them stayed.
	markStep = 4
	// windowPart is the part of a limit that only a new window can bring at once. A mark
	// rises by seven eighths then. With a half instead, buckets were taken for
	// windows.
	windowPart = 0.75
)

// spanStep is the part of a window by which it has to be longer than the other processes know
// before they are told: resets in whole seconds, and answers that take different times, are
// no news.
const spanStep = 16

// marks is what a limit knows of its mark.
type marks struct {
	tally *fleet.Tally             // the mark, as a tally; nil: there is none yet
	taken int64                    // what the mark was when left was learned
	raise func(to int64)           // raises the mark in the Store
	spans *fleet.Tally             // the mark that says how long a window lasts, in milliseconds
	span  func(ms int64)           // raises that
	waits *fleet.Tally             // how often processes asked that waited because too little was left
	ask   func(waits *fleet.Tally) // asks the Store for the count and the marks, and counts that
	asked meter.Instant            // when ask was last called
}

// Mark returns the mark of q's tally t, and makes it if there is none. raise is called to
// raise a mark in the Store, which says how far the count of t may go or, if t is nil, something
// else. asks returns a function that asks the Store for the count and the marks.
func (q *Limit) Mark(t *fleet.Tally, raise func(t, mark *fleet.Tally, to int64), asks func(marks ...*fleet.Tally) func(waits *fleet.Tally)) *fleet.Tally {
	m := &q.shared.marks
	if m.tally == nil {
		mark, spans := t.Mark("m"), t.Mark("p")
		m.tally, m.spans = mark, spans
		m.raise = func(to int64) { raise(t, mark, to) }
		m.span = func(ms int64) { raise(nil, spans, ms) }
		m.waits = t.Questions()
		m.ask = asks(mark, spans, m.waits)
	}
	return m.tally
}

// tellSpan lets the other processes know how long a window lasts, as far as it is longer than
// they know: an answer says how much of its window is left, so the longest of many is right.
func (s *shared) tellSpan() {
	if s.marks.spans == nil || s.alone {
		return
	}
	if ms, _ := s.marks.spans.Number(); s.span-time.Duration(ms)*time.Millisecond >= max(Coarse, s.span/spanStep) {
		s.marks.span(s.span.Milliseconds())
	}
}

// lasts learns how long a window lasts from other processes. A process that was told of no
// window but the last part of its first one would ask too soon when the next one is spent.
func (q *Limit) lasts(now meter.Instant) {
	s := &q.shared
	if s.marks.spans == nil || s.alone {
		return
	}
	if ms, known := s.marks.spans.Number(); known && time.Duration(ms)*time.Millisecond > s.span {
		s.span = time.Duration(ms) * time.Millisecond
		if s.barred && !q.fresh.IsOpen() {
			q.reset.Value = s.next(q.rolled, now)
		}
	}
}

// tell raises the mark to most, if that is news. late is how many units were booked shortly
// before those of the request: they may have reached the server after it, so that the answer
// does not count them. lull says that no other request of q is under way; without it, an
// answer may have overtaken many others, and is not written.
func (q *Limit) tell(most, late int64, lull bool) {
	s, size := &q.shared, q.sizeOr(0)
	if s.marks.tally == nil || s.alone {
		return
	}
	n, _ := s.tally.Raised(s.marks.tally)
	s.marks.taken = max(n, most)
	if most -= max(late, int64(size/markMargin)); lull && float64(most-n) >= max(2, size/markStep) {
		s.marks.raise(most)
	}
}

// learns takes over from the mark if an answer to another process said that more is left.
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

// watch asks the Store for the count and the mark, if it is time to, while requests wait for d.
// It returns for how long to wait until watch is called again. waits is where the Store counts
// that; nil: it does not, because they wait for others, and not for what is lacking.
func (q *Limit) watch(now meter.Instant, d time.Duration, waits *fleet.Tally) time.Duration {
	s := &q.shared
	if s.marks.tally == nil || s.alone || q.terms.Members == 0 || !q.waited() {
		return d
	}
	pause := max(fleet.AskPause(q.terms.Members), s.span/slidePart) // long windows need not be watched so closely
	next := s.marks.asked.Add(pause)
	if next <= now {
		s.marks.asked, next = now, now.Add(pause)
		s.marks.ask(waits)
	}
	return min(d, next.Sub(now))
}
