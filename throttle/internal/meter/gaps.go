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
	full Token // the last grant before which there was no gap of a grain
	log  []gap // since then
}

type gap struct {
	grant Token
	size  float64 // in tokens
}

// gapParts is how many grains a bucket has. What is given back may be less by
// one of them.
const gapParts = 32

// note says that a bucket of that size has this gap before another grant, and
// returns the grant's number.
func (g *gaps) note(tokens float64, size int) Token {
	g.last++
	now, grain := float64(size)-tokens, float64(size)/gapParts
	if now < grain {
		g.full = g.last
		g.clear()
		return g.last
	}
	now = min(now, float64(size)) // a debt is no larger gap, so that there is a largest
	for i := len(g.log) - 1; i >= 0 && now < g.log[i].size+grain; i-- {
		now = min(now, g.log[i].size)
		g.log = g.log[:i]
	}
	g.log = append(g.log, gap{g.last, now})
	return g.last
}

// begin says that no grant so far has taken anything.
func (g *gaps) begin() {
	g.last++
	g.full = g.last
	g.clear()
}

// clear forgets all gaps: the bucket was full after them.
func (g *gaps) clear() {
	if g.log = g.log[:0]; cap(g.log) > 8 {
		g.log = nil // an idle key is small
	}
}

// give is how many of n tokens the grant may give back to a bucket that has so
// many, and notes that they are there.
func (g *gaps) give(grant Token, n, tokens float64, size int) float64 {
	if g.full > grant {
		return 0
	}
	first := sort.Search(len(g.log), func(i int) bool { return g.log[i].grant > grant })
	n = min(n, float64(size)-tokens)
	if first < len(g.log) {
		n = min(n, g.log[first].size)
	}
	if n <= 0 {
		return 0
	}
	for i := first; i < len(g.log); i++ {
		g.log[i].size -= n
	}
	g.tidy(float64(size) / gapParts)
	return n
}

// tidy drops the gaps that a later one is smaller than.
func (g *gaps) tidy(grain float64) {
	kept := len(g.log)
	for i := len(g.log) - 1; i >= 0; i-- {
		switch {
		case g.log[i].size < grain:
			g.full = g.log[i].grant
			g.log = g.log[:copy(g.log, g.log[kept:])]
			return
		case kept == len(g.log) || g.log[i].size < g.log[kept].size:
			kept--
			g.log[kept] = g.log[i]
		}
	}
	g.log = g.log[:copy(g.log, g.log[kept:])]
}
