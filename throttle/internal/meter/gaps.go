package meter

import "sort"

// gaps remembers how near to full a bucket came after each of its grants. A gap is how
// many tokens are missing in the bucket just before a grant. If a grant had not been made,
// its tokens would be in the bucket now, without those that would have overflowed. So a
// grant may give back no more than the smallest gap since it was made. Then never more is
// granted than without it, even if others have used all that flowed in meanwhile.
//
// Grants are numbered. To find the smallest gap since a grant, it is enough to keep gaps
// that no later gap is smaller than: they grow from each to the next, and the first one
// after the grant is the smallest. Gaps that differ by less than a grain share an entry,
// with the smaller size and the later grant, so no more than gapParts are kept. The zero
// value is that of a bucket without grants.
type gaps struct {
	last Token // the number of the last grant
	wide *wide // nil: no gap has been as large as a grain
}

// wide is the gaps of a grain or more.
type wide struct {
	full Token // the last grant before which the gap was smaller than a grain
	log  []gap // those since then
}

type gap struct {
	grant Token   // the last grant that it came before
	size  float64 // in tokens
}

// gapParts is how many grains a bucket has. What is given back may be too little by
// one of them, which is some 3 % of the size. More would make the log of gaps longer.
const gapParts = 32

// note notes the gap of a bucket of that size before another grant, and returns the
// number of that grant.
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
	now = min(now, float64(size)) // a debt counts as an empty bucket, which bounds the length of the log
	for i := len(w.log) - 1; i >= 0 && now < w.log[i].size+grain; i-- {
		now = min(now, w.log[i].size)
		w.log = w.log[:i]
	}
	w.log = append(w.log, gap{g.last, now})
	return g.last
}

// begin forgets all grants so far: none of them may give anything back.
func (g *gaps) begin() {
	g.last++
	g.wide.begin(g.last)
}

// begin forgets all gaps: the bucket was full before the grant full.
func (w *wide) begin(full Token) {
	if w == nil {
		return
	}
	w.full = full
	if w.log = w.log[:0]; cap(w.log) > 8 {
		w.log = nil // an idle key is small
	}
}

// give returns how many of n tokens the grant may give back to a bucket that has so
// many tokens. It takes the gaps to be smaller by these from now on.
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

// tidy drops the gaps for which there is a smaller later one, and those below a grain.
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
