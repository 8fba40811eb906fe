package meter

import "sort"

// gaps remembers how near to full a bucket came after each of its grants. Had a
// grant not been made, its tokens would be in the bucket now, but for those
// that would have overflowed. So what a grant gives back fits into the smallest
// gap since: then never more goes than without the grant, although others may
// have used all that flowed in meanwhile.
//
// Grants are numbered. What is kept is gaps that grow, each with the last grant
// that it came before: the smallest gap since a grant is the first one after
// it. Gaps that differ by less than a grain share an entry, of the smaller size
// and the later grant, so no more than gapParts are kept. The zero gaps is that
// of a bucket without grants.
type gaps struct {
	last Token // grant
	wide *wide // nil: there never was a gap of a grain
}

// wide is the gaps of a grain or more.
type wide struct {
	full Token // the last grant before which there was none
	log  []gap // since then
}

type gap struct {
	grant Token
	size  float64 // in tokens
}

// gapParts is how many grains a bucket has. What is given back may be less by
// one of them: some 3 % of the size, and the log of gaps stays shorter than this.
const gapParts = 32

// note says that a bucket of that size has this gap before another grant, and
// returns the grant's number.
func (g *gaps) note(tokens float64, size int) Token {
	g.last++
	now, grain := float64(size)-tokens, float64(size)/gapParts
	if now < grain {
		g.wide.begin(g.last)
		return g.last
	}
	w := g.wide
	if w == nil {
		w = &wide{full: g.last - 1}
		g.wide = w
	}
	now = min(now, float64(size)) // a debt is no larger gap, so that there is a largest
	for i := len(w.log) - 1; i >= 0 && now < w.log[i].size+grain; i-- {
		now = min(now, w.log[i].size)
		w.log = w.log[:i]
	}
	w.log = append(w.log, gap{g.last, now})
	return g.last
}

// begin says that no grant so far has taken anything.
func (g *gaps) begin() {
	g.last++
	g.wide.begin(g.last)
}

// begin forgets all gaps: the bucket was full after them, before that grant.
func (w *wide) begin(full Token) {
	if w == nil {
		return
	}
	w.full = full
	if w.log = w.log[:0]; cap(w.log) > 8 {
		w.log = nil // an idle key is small
	}
}

// give is how many of n tokens the grant may give back to a bucket that has so
// many, and notes that they are there.
func (g *gaps) give(grant Token, n, tokens float64, size int) float64 {
	w := g.wide
	if w == nil { // all gaps before grants were less than a grain
		w = &wide{full: g.last}
	}
	if w.full > grant {
		return 0
	}
	first := sort.Search(len(w.log), func(i int) bool { return w.log[i].grant > grant })
	n = min(n, float64(size)-tokens)
	if first < len(w.log) {
		n = min(n, w.log[first].size)
	}
	if n <= 0 {
		return 0
	}
	for i := first; i < len(w.log); i++ {
		w.log[i].size -= n
	}
	w.tidy(float64(size) / gapParts)
	return n
}

// tidy drops the gaps that a later one is smaller than.
func (w *wide) tidy(grain float64) {
	kept := len(w.log)
	for i := len(w.log) - 1; i >= 0; i-- {
		switch {
		case w.log[i].size < grain:
			w.full = w.log[i].grant
			w.log = w.log[:copy(w.log, w.log[kept:])]
			return
		case kept == len(w.log) || w.log[i].size < w.log[kept].size:
			kept--
			w.log[kept] = w.log[i]
		}
	}
	w.log = w.log[:copy(w.log, w.log[kept:])]
}
