package learn

import "math"

// A slot is what one epoch asks of a candidate's size, in units: all that was
// accepted since the epoch before needed reached, and what was refused first
// found level in use, so that the size is below level+1.
type slot struct {
	reached float64 // zero: nothing was accepted
	level   float64 // -1: the last slot, which no refusal ends
	own     float64 // the part of level that is no other process's
	late    float64 // least level found by later refusals of the epoch; -1: none
	epoch   uint16  // that ends it; zero: none does
	void    bool    // nothing can be said of this refusal
	broken  bool    // something was accepted during a ban
	fade    bool    // the log does not reach back far enough to judge it
}

// A replay is what one pass over the log says of a shape, whatever its size.
type replay struct {
	slots [maxEpochs + 1]slot
	n     int
	end   state
	risen uint16  // the epoch after which the limit rose; zero: it did not
	vague Instant // until then, nobody knows any more when exactly they were sent: they were merged
	some  float64 // and so many were the last of them
	blur  float64 // units of a bucket that flow off within the doubt about arrivals
	late  float64 // see timing
	hints [hinted]struct {
		st   state
		at   Instant
		hint Instant
	}
	nhints int
}

// A timing is what is known of the way to the server: half of the shortest
// round trip, by how much arrivals may be off, and which part of a round trip
// the server works.
type timing struct {
	half, slack Instant
	work        float64
	late        float64 // trips that pass until it is heard of, at most, what others send
}

// busyDoubt is by which part the requests at the server may be more or fewer
// than those under way times work.
const busyDoubt = .1

// run replays the log. Doubt about when requests arrived goes in the shape's
// favour.
func (p *replay) run(s *shape, r *record, t timing) {
	p.n, p.nhints, p.blur, p.late = 0, 0, 0, t.late
	if s.family == bucket {
		p.blur = float64(t.slack) / float64(s.per)
	}
	if len(r.log) == 0 {
		return
	}
	st := s.begin(r.log[0].at + t.half)
	cur := slot{level: -1, late: -1}
	last := uint16(0)
	p.vague = math.MinInt64 / 4
	for i := range r.log {
		l := &r.log[i]
		if l.off > 0 && l.last-l.at > max(s.per/16, t.slack) {
			p.vague, p.some = l.last, float64(l.taken)
		}
		early, own := 0.0, math.Inf(1)
		if s.family == atOnce {
			under := max(0, float64(l.busy)+1-float64(l.refused)) // of what was sent together
			st.level = t.work * under
			early = min((1+busyDoubt)*st.level, under)
			own = min((1+busyDoubt)*t.work, 1) * max(0, under-float64(l.theirs))
		} else if l.refused > 0 {
			early = s.peek(&st, l.at+t.half-t.slack, r.log, t.half) // before what is about to go by does
		}
		cur.broken = cur.broken || l.taken > 0 && st.barred > l.last+t.half+t.slack
		s.spread(&st, l, r.log, t.half)
		if l.taken > 0 {
			cur.reached = max(cur.reached, p.reached(s, st, l, r.log, t))
		}
		if l.refused == 0 {
			continue
		}
		cur.level = max(early, s.inUse(&st, max(l.at+t.half, st.start)))
		cur.own = min(own, cur.level)
		banned := s.refuses(&st, l.last+t.half, t.slack)
		if l.epoch != 0 && l.epoch != last {
			last = l.epoch
			cur.void = banned
			p.ends(&cur, r, l, st, l.at+t.half, s)
			cur = slot{late: -1}
		} else if l.epoch != 0 && p.n > 0 && !banned {
			p.later(cur.level)
		}
		cur.level = -1
		if s.refused {
			s.add(&st, l.last+t.half, float64(l.refused))
		}
	}
	p.push(cur)
	p.end = st
}

// reached is the level that what was accepted of a rec shows, which was just
// added: at least so much, whenever exactly those that were merged were sent.
func (p *replay) reached(s *shape, st state, l *rec, log []rec, t timing) float64 {
	if s.family == atOnce {
		return (1 - busyDoubt) * st.level
	}
	span := l.last - l.at
	if s.family == slidingLog && span > s.per { // they were not all in use at once
		return st.level - float64(l.under) - float64(l.taken)*(1-float64(s.per)/float64(span))
	}
	at := l.last + t.half + t.slack
	level := s.peek(&st, at, log, t.half) - float64(l.under)
	if s.family == slidingLog && int(st.head) < len(log) { // of the first that counts, some may have gone by
		h := &log[st.head]
		if gone := at - s.per - t.half - h.at; gone >= 0 && h.last > h.at {
			n := h.units(s.refused)
			level -= min(n, 1+(n-1)*float64(gone)/float64(h.last-h.at)+float64(h.off)/4)
		}
	}
	switch {
	case s.family == bucket || l.last-p.vague >= 2*s.per:
	case l.last > p.vague || span > s.per:
		level -= p.some
	case s.family != slidingLog: // a border may lie between those of this rec
		level -= p.some / 2
	}
	return level
}

// later notes one more refusal of the epoch that ended the last slot.
func (p *replay) later(level float64) {
	if b := &p.slots[p.n-1]; b.late < 0 || level < b.late {
		b.late = level
	}
}

// ends ends a slot with the first refusal of an epoch.
func (p *replay) ends(cur *slot, r *record, l *rec, st state, at Instant, s *shape) {
	cur.epoch = l.epoch
	i := r.epochAt(l.epoch)
	if i < 0 {
		cur.void = true
		p.push(*cur)
		return
	}
	e := &r.epochs[i]
	row := e.streak >= streakSays
	cur.void = cur.void || row
	cur.fade = r.cut && (at-r.log[0].at < s.memory(1) || s.family == bucket && st.spare < cur.level)
	if l.at-p.vague < s.memory(max(1, cur.level)) {
		cur.level += p.some // so high it may have been
	}
	p.push(*cur)
	if e.hint >= 0 && !row {
		if p.nhints == hinted {
			copy(p.hints[:], p.hints[1:])
			p.nhints--
		}
		h := &p.hints[p.nhints]
		h.st, h.at, h.hint = st, at, e.hint
		p.nhints++
	}
}

func (p *replay) push(s slot) {
	if p.n == len(p.slots) {
		copy(p.slots[:], p.slots[1:])
		p.n--
	}
	p.slots[p.n] = s
	p.n++
}

const (
	// streakSays: the refusals of a streak say nothing of the quota from this one
	// on; the server may have shut the client out. Without it twice as many calls
	// were lost on train.
	streakSays = 12

	againstTaken   = 1.5 // an acceptance that the candidate would have refused, and
	mostExcess     = 1.5 // up to that much more the more it is beyond the size
	againstRefused = 1.5 // a refusal where it had room, and up to mostRoom more
	mostRoom       = 3.0 // of a size that is half empty
	againstLate    = .3  // such a refusal that was not the first of its epoch
	blurred        = 1   // of what doubt leaves unlikely counts for each refusal; with .5 and 2, nothing changed on train
	riseOdds       = 2   // few limits rise; with 3, the same on train
	unjudged       = .7  // a refusal older than the log can judge; free of charge made windows of an hour unfalsifiable
)

// penalty is how much the evidence is against a size, as a logarithm.
func (p *replay) penalty(size float64) float64 {
	// A bucket that flows off within the doubt about arrivals explains any refusal by
	// two that happened to arrive together, but does not make it likely.
	unlikely := math.Log1p(p.blur/size) * blurred
	// So do requests of others that may have been under way beside one, if it is heard late
	// of them: then it is more likely that they were not.
	aside := math.Log1p(p.late) * blurred
	sum, since := 0.0, math.Inf(1)
	for i := p.n - 1; i >= 0; i-- {
		s := &p.slots[i]
		x := 0.0
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
		case size > s.own+1-1e-6:
			x += aside
		default:
			x += unlikely
		}
		if s.late >= 0 && !s.void && size > s.late+1-1e-6 {
			x += againstLate
		}
		if s.epoch != 0 && s.epoch == p.risen {
			since = sum + riseOdds
		}
		sum += x * (1 - float64(p.n-1-i)/maxEpochs)
	}
	return min(sum, since)
}

// size is the likeliest one, and how much speaks against it. was is
// what it was before; zero: none.
func (p *replay) size(was float64) (size, against float64) {
	try := func(s float64) {
		if s < 1 {
			return
		}
		c := p.penalty(s) + .5*odd(s)
		if size == 0 || c < against {
			size, against = s, c
		}
	}
	lo, hi := p.bounds()
	if math.IsInf(hi, 1) { // no refusal says where it ends
		if was >= lo {
			try(was)
		}
		if size == 0 {
			size, against = 2*lo, p.penalty(2*lo)+2
		}
		return size, against
	}
	if s := roundestCount(lo-1e-3, hi-1e-6); s > 0 {
		try(s)
		try(math.Ceil(hi - 1 - 1e-6))
		return size, against
	}
	try(math.Ceil(lo - 1e-3))
	if s := &p.slots[p.n-1]; p.risen != 0 && s.level < 0 && s.reached > 0 {
		try(roundestCount(s.reached, 2*s.reached))
	}
	for i := max(0, p.n-8); i < p.n; i++ {
		s := &p.slots[i]
		if s.level >= 0 && !s.void {
			try(math.Ceil(s.level - 1e-6)) // the largest below level+1
			if s.reached > 0 && s.reached < s.level {
				try(roundestCount(s.reached, s.level))
			}
		}
	}
	return max(1, size), against
}

// bounds are what all slots together leave: the size is at least lo, and below
// hi.
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
