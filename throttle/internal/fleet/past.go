package fleet

import (
	"slices"
	"time"
)

// past is what a tally's count was at certain times, as far as this process heard, oldest
// first. Units booked between two of these times are dated by the later one.
type past []mark

type mark struct {
	at time.Time
	n  int64
}

// mostMarks is how many are kept. If there are more, every second one is dropped, so that its
// units are dated by the next one.
const mostMarks = 128

// add notes a count that was heard at now.
func (p past) add(now time.Time, n int64) past {
	switch last := len(p) - 1; {
	case last >= 0 && n <= p[last].n:
		return p
	case len(p) == mostMarks:
		for i := range mostMarks / 2 {
			p[i] = p[2*i]
		}
		p = p[:mostMarks/2]
	}
	return append(p, mark{now, n})
}

// forget drops all marks before the last one that is not after until.
func (p past) forget(until time.Time) past {
	i := 0
	for i+1 < len(p) && !p[i+1].at.After(until) {
		i++
	}
	return p[i:]
}

// Before is how far the count was that long ago at least, as far as that is known since
// Past was first called; zero: it is not.
func (t *Tally) Before(ago time.Duration) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now().Add(-ago)
	for _, m := range slices.Backward(t.past) {
		if !m.at.After(at) {
			return m.n
		}
	}
	return 0
}

// Past is how far the count was that long ago or earlier, and in how long it will be
// as long ago that it went on; zero: it did not. It is not known for the time before
// Past was first called.
func (t *Tally) Past(ago time.Duration) (n int64, next time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.past == nil {
		t.past = past{}.add(now, t.count)
	}
	at := now.Add(-ago)
	t.past = t.past.forget(at)
	if t.past[0].at.After(at) {
		return 0, 0, false
	}
	if len(t.past) > 1 {
		next = t.past[1].at.Sub(at)
	}
	return t.past[0].n, next, true
}
