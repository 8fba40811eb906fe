package learn

import (
	"math"
	"slices"
	"sort"
	"time"
)

const (
	maxRecords = 160                           // of the log: 5 KB; with 128 a Learner takes 7.5 KB on the heap, and is refused more often: 117 times a thousand instead of 99 by bare windows
	maxEpochs  = 24                            // a contradiction is forgotten after that many refusals
	leastGrain = Instant(time.Millisecond / 4) // half of the doubt about arrivals at least, see trips.slack
)

// A rec is what was sent within one grain, and what became of it.
type rec struct {
	at, last              Instant // of the first and the last of them
	under, taken, refused uint16
	epoch                 uint16 // of those that were refused; zero: none was
	against               uint16 // bit i: candidate i had no room for one of them
	busy                  uint16 // that were under way when the last of them was sent
	theirs                uint16 // of these, others may have sent so many, at another time than it was heard of
	off                   uint16 // by so many quarters of a unit the count was off at some time, had they come evenly
}

// units are those that count at a server which counts refused ones or not.
func (r *rec) units(refusedToo bool) float64 {
	n := float64(r.under) + float64(r.taken)
	if refusedToo {
		n += float64(r.refused)
	}
	return n
}

// An epoch is the refusals of what was sent before the first of them was
// heard: one event, of which only the first counts in full.
type epoch struct {
	id     uint16
	streak uint8 // epochs in a row without an acceptance between
	heard  Instant
	sent   Instant // of the earliest that was refused
	hint   Instant // a span; -1: none
}

// A record is the log of a learner, oldest first, and its epochs.
type record struct {
	log    []rec
	grain  Instant
	epochs []epoch // oldest first, at most maxEpochs
	lastID uint16
	apart  bool // what is sent gets a rec of its own
	cut    bool // the log does not reach back to the first request any more
}

// sent notes a request and returns its rec.
func (r *record) sent(now Instant, n, busy, theirs int) *rec {
	if k := len(r.log); k > 0 {
		l := &r.log[k-1]
		if !r.apart && now-l.at < r.grain && l.refused == 0 && l.under < 1<<15 && l.taken < 1<<15 {
			l.last, l.busy, l.theirs = max(l.last, now), uint16(busy), uint16(theirs)
			l.under += uint16(n)
			return l
		}
		now = max(now, l.last)
	}
	r.log = append(r.log, rec{at: now, last: now, under: uint16(n), busy: uint16(busy), theirs: uint16(theirs)})
	return &r.log[len(r.log)-1]
}

// find is the rec of a request that was sent then. nil: it is forgotten.
func (r *record) find(sent Instant) *rec {
	last := r.last(sent)
	for i := last; i >= max(0, last-2); i-- { // a neighbour, where instants were equal
		if r.log[i].under > 0 {
			return &r.log[i]
		}
	}
	return nil
}

// last is the index of the last rec that begins no later than then; -1: there is none.
func (r *record) last(then Instant) int {
	return sort.Search(len(r.log), func(i int) bool { return r.log[i].at > then }) - 1
}

// refused notes a refusal and reports whether it begins an epoch.
func (r *record) refused(l *rec, now, sent, hint Instant) (begins bool) {
	if k := len(r.epochs); k > 0 && sent < r.epochs[k-1].heard {
		e := &r.epochs[k-1]
		for i := k - 2; i >= 0 && sent < r.epochs[i].heard; i-- {
			e = &r.epochs[i]
		}
		e.hint, e.sent = max(e.hint, hint), min(e.sent, sent)
		if l != nil {
			l.epoch = e.id
		}
		return false
	}
	if len(r.epochs) == maxEpochs {
		r.epochs = slices.Delete(r.epochs, 0, 1)
	}
	if r.epochs == nil {
		r.epochs = make([]epoch, 0, maxEpochs) // grown, it would be a third larger
	}
	r.lastID++
	streak := uint8(1)
	if k := len(r.epochs); k > 0 && !r.takenSince(r.epochs[k-1].heard) {
		streak = min(r.epochs[k-1].streak+1, 200)
	}
	r.epochs = append(r.epochs, epoch{r.lastID, streak, now, sent, hint})
	if l != nil {
		l.epoch = r.lastID
	}
	return true
}

// takenSince reports whether what was sent since then was accepted.
func (r *record) takenSince(t Instant) bool {
	return slices.ContainsFunc(r.log, func(x rec) bool { return x.at >= t && x.taken > 0 })
}

// mostUneven is the coarsest merging: as good as one of any neighbours.
const mostUneven = 1 << 14

// compact makes room when the log is full: it merges accepted neighbours where
// that blurs a date by no more than a part of its age, first those that came as evenly
// as if they were one, and drops the oldest if that is not enough. A burst and what
// followed it evenly stay apart: as one, they would show a bucket emptier than it was.
// It reports whether it did anything.
func (r *record) compact(now Instant) bool {
	if len(r.log) < maxRecords {
		return false
	}
	for uneven := 1; len(r.log) > maxRecords*3/4 && uneven <= mostUneven; uneven *= 4 {
		for part := 7; len(r.log) > maxRecords*3/4 && part >= 3; part-- {
			r.merge(now, part, float64(uneven))
		}
	}
	if n := len(r.log); n > maxRecords*3/4 {
		r.cut = true
		keep := copy(r.log, r.log[n-maxRecords*3/4:])
		r.log = r.log[:keep]
	}
	return true
}

// merge merges neighbours that are closer than a part of their age, as a power of two,
// and came as evenly as that.
func (r *record) merge(now Instant, part int, uneven float64) {
	k := 0
	for i := 1; i < len(r.log); i++ {
		a, b := &r.log[k], &r.log[i]
		near := b.last-a.at <= max(r.grain, (now-b.last)>>part)
		if near && a.plain() && b.plain() && int(a.taken)+int(b.taken) < 1<<15 && a.uneven(b) <= uneven {
			a.off = uint16(a.uneven(b))
			a.last, a.taken, a.against, a.busy = b.last, a.taken+b.taken, a.against|b.against, max(a.busy, b.busy)
			continue
		}
		if k++; k < i {
			r.log[k] = *b
		}
	}
	r.log = r.log[:k+1]
}

// uneven is what off is of a and b as one.
func (a *rec) uneven(b *rec) float64 {
	off := float64(max(a.off, b.off))
	k, n, span := float64(a.taken), float64(a.taken)+float64(b.taken), float64(b.last-a.at)
	if n < 2 || span <= 0 {
		return off
	}
	each := (n - 1) / span
	return off + 4*max(math.Abs(k-1-each*float64(a.last-a.at)), math.Abs(k-each*float64(b.at-a.at)))
}

func (r *rec) plain() bool { return r.under == 0 && r.refused == 0 }

// epochAt is the index of an epoch; -1: it is forgotten.
func (r *record) epochAt(id uint16) int {
	return slices.IndexFunc(r.epochs, func(e epoch) bool { return e.id == id })
}
