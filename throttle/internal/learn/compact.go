package learn

import "math"

// mostUneven is so large, four thousand units, that compact merges nearly any neighbours in its
// last pass. It fits into entry.uneven.
const mostUneven = 1 << 14

// leastHalvings says that neighbours may be merged if an eighth of their age lies between them, and
// mostHalvings that those are merged first which are closer than a 128th.
const (
	leastHalvings = 3
	mostHalvings  = 7
)

// compact makes room when the log is full, and reports whether it did anything. It merges
// neighbours whose requests were all accepted, if they are closer to one another than an eighth
// of their age. Those that are one even flow are merged first, and among these the ones that are
// closest for their age. A burst and the even flow after it stay apart as long as possible,
// because as one entry they would show a bucket emptier than it was. If merging makes too little
// room, what was refused in forgotten epochs goes, and at last the oldest entries are dropped.
func (r *record) compact(now Instant) bool {
	if len(r.log) < maxEntries {
		return false
	}
	if r.mergeAll(now); len(r.log) > keptEntries {
		r.foldRefused()
		r.mergeAll(now)
	}
	if n := len(r.log); n > keptEntries {
		r.cut = true
		keep := copy(r.log, r.log[n-keptEntries:])
		r.log = r.log[:keep]
	}
	return true
}

// mergeAll merges as much as is needed.
func (r *record) mergeAll(now Instant) {
	for most := 1; len(r.log) > keptEntries && most <= mostUneven; most *= 4 {
		for halvings := r.nearest(now); len(r.log) > keptEntries && halvings >= leastHalvings; halvings-- {
			r.merge(now, halvings, float64(most))
		}
	}
}

// nearest is how many times the age of neighbours can be halved, up to mostHalvings, so that some are
// no further apart. With more, merge would pass over the log in vain.
func (r *record) nearest(now Instant) int {
	halvings := leastHalvings - 1
	for i := 1; i < len(r.log) && halvings < mostHalvings; i++ {
		for halvings < mostHalvings && r.near(&r.log[i-1], &r.log[i], now, halvings+1) {
			halvings++
		}
	}
	return halvings
}

// near reports whether b, the neighbour after a, is no further from it than its age, halved so many
// times.
func (r *record) near(a, b *entry, now Instant, halvings int) bool {
	return b.last-a.at <= max(r.grain, (now-b.last)>>halvings)
}

// foldRefused drops entries of nothing but refused units whose epochs are forgotten, as these end
// no slot. For shapes that count refused units, they count with those that were refused before.
func (r *record) foldRefused() {
	var before *entry
	epochs := r.finder()
	k := 0
	for _, l := range r.log {
		only := l.under == 0 && l.taken == 0 && l.refused > 0 && epochs.find(l.epoch) == nil
		if only && before != nil && int(before.refused)+int(l.refused) < 1<<16 {
			before.refused += l.refused
			continue
		}
		if r.log[k] = l; l.refused > 0 {
			before = &r.log[k]
		}
		k++
	}
	r.log = r.log[:k]
}

// merge merges accepted neighbours that are no further apart than their age, halved so many
// times, if together they are no more uneven than most.
func (r *record) merge(now Instant, halvings int, most float64) {
	k := 0
	for i := 1; i < len(r.log); i++ {
		a, b := &r.log[k], &r.log[i]
		if r.near(a, b, now, halvings) && a.allAccepted() && b.allAccepted() && int(a.taken)+int(b.taken) < 1<<15 {
			if uneven := a.unevenWith(b); uneven <= most {
				a.uneven = uint16(uneven)
				if int(b.busy)-int(b.gone) > int(a.busy)-int(a.gone) {
					a.busy, a.gone, a.theirs = b.busy, b.gone, b.theirs
				}
				a.last, a.taken, a.against = b.last, a.taken+b.taken, a.against|b.against
				continue
			}
		}
		if k++; k < i {
			r.log[k] = *b
		}
	}
	r.log = r.log[:k+1]
}

// unevenWith is how uneven a and b are as one entry, in quarters of a unit: by how much the
// number of units sent up to some instant differs at most from that of an even flow.
func (a *entry) unevenWith(b *entry) float64 {
	before := float64(max(a.uneven, b.uneven))
	k, n, span := float64(a.taken), float64(a.taken)+float64(b.taken), float64(b.last-a.at)
	if n < 2 || span <= 0 {
		return before
	}
	each := (n - 1) / span
	return before + 4*max(math.Abs(k-1-each*float64(a.last-a.at)), math.Abs(k-each*float64(b.at-a.at)))
}

// allAccepted reports whether none of r is under way or was refused.
func (r *entry) allAccepted() bool { return r.under == 0 && r.refused == 0 }
