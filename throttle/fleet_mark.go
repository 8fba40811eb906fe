package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
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
)

// marks is what a quota knows of its mark.
type marks struct {
	tally *fleet.Tally // nil: there is none yet
	taken int64        // how far the mark was when what is left was known
	raise func(to int64)
	ask   func() // asks the Store how far the count and the mark are
	asked instant
}

// join makes m the mark of t, for which requests wait in a.
func (m *marks) join(p *passage, a *queue.Account, t *fleet.Tally) {
	if m.tally != nil {
		return
	}
	f, key := p.record.t.fleet, fleet.Key{ID: storeKey(p.record.host, "", p.record.part), Name: p.record.key}
	mark := t.Mark()
	key.Tallies = []*fleet.Tally{t, mark}
	m.tally = mark
	m.raise = func(to int64) { f.Raise(key.ID, t, mark, to) }
	m.ask = p.asks(key, a, func(instant) {})
}

// asks returns what asks the Store about key, and lets then and those that wait for a
// see to it.
func (p *passage) asks(key fleet.Key, a *queue.Account, then func(now instant)) func() {
	f, r := p.record.t.fleet, p.record
	return func() {
		f.Ask(key, func() {
			d := r.lock()
			defer d.Unlock()
			now := d.Now()
			then(now)
			d.Mark(a)
			d.Run(now)
		})
	}
}

// tell lets the other processes know how far the count may go, if that is news. While
// more of q's requests are under way, lull is false, an answer may have overtaken many.
func (q *quota) tell(most int64, lull bool) {
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
func (q *quota) learns(now instant) {
	s := &q.shared
	if s.marks.tally == nil || !s.based || s.alone || q.asking {
		return
	}
	if n, known := s.tally.Raised(s.marks.tally); known && n > s.marks.taken {
		s.marks.taken = n
		if left := float64(n - s.base); left > q.left {
			q.left, q.basis = left, now
		}
	}
}

// watch asks the Store what others did, if it is time to, while requests wait for d, and
// returns for how long to wait until that is seen to again.
func (q *quota) watch(now instant, d time.Duration) time.Duration {
	s := &q.shared
	if s.marks.tally == nil || s.alone || !s.based || q.terms.members == 0 || !q.account.Waited() {
		return d
	}
	pause := max(askPause(q.terms.members), s.span/slidePart) // of a long window a small part
	next := s.marks.asked.Add(pause)
	if next <= now {
		s.marks.asked, next = now, now.Add(pause)
		s.marks.ask()
	}
	return min(d, next.Sub(now))
}

// askPause is for how long a process that waits does not ask the Store: a fleet of so many
// asks a hundred times a second in all, and each process ten times at most.
func askPause(members int) time.Duration {
	return max(100*time.Millisecond, time.Duration(members)*10*time.Millisecond)
}
