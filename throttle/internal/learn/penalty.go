package learn

import (
	"math"
	"slices"
)

// Penalties are evidence against a size, as logarithms of odds: 1.5 makes a candidate less likely
// by a factor of 4.5, and 4.5 by one of 90. They were chosen on train. Figures stand beside those
// for which other values were compared.
const (
	// shutOutFrom is the epoch of a streak from which on refusals say nothing of the size: so many
	// without an acceptance between show that the server has probably shut the client out.
	// Without this rule, twice as many calls were lost on train.
	shutOutFrom = 12

	// againstTaken is for acceptances that the candidate would have refused. One is added for each
	// unit that they went beyond the size, up to mostExcess.
	againstTaken = 1.5
	mostExcess   = 1.5
	// againstRefused is for a refusal where the candidate had room. Up to mostRoom is added, all
	// of it if it was half empty: jitter explains a little room, but not so much.
	againstRefused = 1.5
	mostRoom       = 3.0
	// againstLater is for a later refusal of the same epoch, if the candidate had room. All
	// refusals of an epoch have one cause, so the later ones add little.
	againstLater = .3
	// doubted is for a refusal where the candidate had room, unless the request arrived earlier or
	// later than it seems, as every second one does.
	doubted = math.Ln2
	// blurred weighs refusals that only doubt about arrivals explains. With .5 and 2, nothing
	// changed on train.
	blurred = 1
	// riseOdds is for a limit that rose, as few do. Then what was against the candidate before
	// the rise does not count. With 3, the result was the same on train.
	riseOdds = 2
	// otherOdds is for a row of refusals that was taken for an outage. It counts against shapes
	// that have no ban, because they do not explain it. With 1.5, a server that shut out for 30 s
	// served 95 % of a demand of half of its quota instead of all, as a third row was needed at
	// times.
	otherOdds = 2.5
	// unjudged is for a refusal that is older than the log can judge, or too long after what it
	// keeps of old requests. Without it, nothing could refute windows of an hour.
	unjudged = .7

	// lastSlots is the slots of which each suggests a size, if no size explains all of them.
	lastSlots = 8
)

// penalty is how much the evidence is against a size, and how much less likely the size is as only
// doubt about arrivals explains some refusals. Old slots count less.
func (p *replay) penalty(size float64) (against, doubt float64) {
	return p.penaltyBelow(math.Inf(1), size, 0)
}

// penaltyBelow is penalty, or +Inf if the sum of both, and of more that is against the size, is no
// less than most.
func (p *replay) penaltyBelow(most, size, more float64) (against, doubt float64) {
	// If units of a bucket flow off within the doubt about arrivals, it explains any refusal: two
	// requests may have arrived together by chance. The more units, the less likely that is.
	// The same is true of requests of other processes that may have been under way at the time
	// of the refusal, see aside: the later they are heard of, the less likely it is that they were.
	unlikely := 0.0
	if p.blur > 0 {
		unlikely = math.Log1p(p.blur/size) * blurred
	}
	since, sinceDoubt := math.Inf(1), 0.0 // of the slots since the rise, and its odds
	for i := p.n - 1; i >= 0; i-- {
		s := &p.slots[i]
		if s.epoch != 0 && s.epoch == p.risen {
			since, sinceDoubt = against+riseOdds, doubt
		}
		x, vague := s.penalty(size, p.aside, unlikely)
		if vague {
			doubt += doubted * p.weight(i)
		}
		if against += x * p.weight(i); against+more+doubt >= most && since+more+sinceDoubt >= most {
			return math.Inf(1), 0
		}
	}
	if since+sinceDoubt < against+doubt {
		return since, sinceDoubt
	}
	return against, doubt
}

// penalty is how much s is against the size. It is aside where requests of others may explain the
// refusal, and unlikely where the size does. vague says that only doubt about arrivals does.
func (s *slot) penalty(size, aside, unlikely float64) (x float64, vague bool) {
	if s.reached > size+1e-3 {
		x = againstTaken + min(mostExcess, s.reached-size-1e-3)
	}
	if s.broken {
		x += againstTaken + mostExcess
	}
	switch {
	case s.level < 0 || s.void:
	case s.fade:
		x += unjudged
	case size > s.level+1-1e-6:
		x += againstRefused + mostRoom*min(1, 2*(size-s.level-1)/size)
	case size > s.clear+1-1e-6:
		x += unjudged
	case size > s.own+1-1e-6:
		x += aside
	default:
		x += unlikely
		vague = size > s.sharp+1-1e-6
	}
	if s.later >= 0 && !s.void && size > s.later+1-1e-6 {
		x += againstLater
	}
	return x, vague
}

// weight is how much slot i counts: less the older it is, but at least half, until it is forgotten.
// When the oldest counted next to nothing, a limit that had been known for minutes was doubted, as
// all that told it from others had come before it was known: a tenth of all requests were refused
// at 20 a second, sliding.
func (p *replay) weight(i int) float64 { return 1 - float64(p.n-1-i)/(2*maxEpochs) }

// size returns the likeliest size, and what penalty says of it. was is the size that the shape had
// before; zero: it had none. It returns zero if there is no size that has less than most against it.
func (p *replay) size(was, most float64) (size, against, doubt float64) {
	var tried [2 + 2*lastSlots]float64
	n := 0
	try := func(s float64) { // takes s if it is better than the best so far
		if s < 1 || slices.Contains(tried[:n], s) {
			return
		}
		tried[n], n = s, n+1
		odds := .5 * odd(s)
		a, d := p.penaltyBelow(most, s, odds)
		if a += odds; a+d < most {
			size, against, doubt, most = s, a, d, a+d
		}
	}
	lo, hi := p.bounds()
	if math.IsInf(hi, 1) { // no refusal says where it ends
		if was >= lo {
			try(was)
		}
		if size == 0 {
			size = 2 * lo
			against, doubt = p.penalty(size)
			against += 2 // a mere guess, which counts against the shape
		}
	} else if s := p.roundestCount(lo-1e-3, hi-1e-6); s > 0 { // there is a size that all slots allow
		try(s)
		try(math.Ceil(hi - 1 - 1e-6))
	} else {
		try(math.Ceil(lo - 1e-3)) // no size explains everything
		p.lastSizes(try)
	}
	return size, against, doubt
}

// lastSizes has sizes tried that explain one of the last slots.
func (p *replay) lastSizes(try func(size float64)) {
	if s := &p.slots[p.n-1]; p.risen != 0 && s.level < 0 && s.reached > 0 {
		try(p.roundestCount(s.reached, 2*s.reached))
	}
	for i := max(0, p.n-lastSlots); i < p.n; i++ {
		s := &p.slots[i]
		if s.level >= 0 && !s.void {
			try(math.Ceil(s.level - 1e-6)) // the largest size that is less than level+1
			if s.reached > 0 && s.reached < s.level {
				try(p.roundestCount(s.reached, s.level))
			}
		}
	}
}

// roundestCount is the function of that name.
func (p *replay) roundestCount(lo, hi float64) float64 {
	lo, hi = math.Ceil(lo-1e-6), math.Floor(hi+1e-6)
	was := &p.counts[uint(31*lo+hi)%uint(len(p.counts))]
	if was.lo != lo || was.hi != hi {
		was.lo, was.hi, was.n = lo, hi, roundestCount(lo, hi)
	}
	return was.n
}

// bounds returns what all slots together allow: the size is at least lo, and less than hi.
func (p *replay) bounds() (lo, hi float64) {
	lo, hi = 1, math.Inf(1)
	for i := range p.n {
		s := &p.slots[i]
		lo = max(lo, s.reached)
		if s.level >= 0 && !s.void && !s.fade {
			hi = min(hi, s.level+1)
		}
	}
	return lo, hi
}
