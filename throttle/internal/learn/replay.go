package learn

import "math"

// A slot is what the log says of a candidate's size, in units, between two epochs. The requests
// that were accepted show that the size is at least reached. The first refusal of the epoch that
// ends the slot found level in use, so that the size is less than level+1.
type slot struct {
	reached float64 // zero: nothing was accepted
	level   float64 // -1: no refusal ends the slot, because it is the last
	sharp   float64 // the part of level that no doubt about arrivals explains
	own     float64 // the part of level without what other processes sent
	clear   float64 // the part of level that does not depend on when the units of merged entries were sent
	later   float64 // the least level that later refusals of the epoch found; -1: there were none
	epoch   uint16  // the one that ends the slot; zero: none does
	void    bool    // the refusal says nothing of the size
	broken  bool    // something was accepted during a ban, which the candidate would have refused
	fade    bool    // the log does not reach back far enough to judge the refusal
}

// A replay is what one pass over the log says of a shape, whatever its size.
type replay struct {
	slots     [maxEpochs + 1]slot
	n         int
	end       state   // after the last entry of the log
	risen     uint16  // the epoch after which the limit rose; zero: it did not
	vague     Instant // when the last merged entry ended of which nobody knows any more when exactly its units were sent
	vagueSpan Instant // for how long it lasted
	fewer     float64 // so many fewer of its units may count than do in the state,
	more      float64 // and so many more
	blur      float64 // for a bucket: units that flow off within the doubt about arrivals
	aside     float64 // how unlikely it is that requests of others were under way which explain a refusal, see penalty
	hints     [hinted]struct {
		st   state // of the limiter when the request with this hint was refused
		at   Instant
		hint Instant
	}
	nhints int                             // of how many refusals so far; hints has the last of them, in turn
	counts [32]struct{ lo, hi, n float64 } // what roundestCount said last, as candidates of one search ask the same
}

// A timing is what is known of the way to the server and of its work.
type timing struct {
	half   Instant // half of the shortest round trip: a request arrives so long after it was sent,
	slack  Instant // earlier or later by so much
	work   float64 // the part of a round trip for which the server works, from 0 to 1
	fixed  Instant // for so long it works on each request
	varies float64 // and for so long beyond that, in the mean
	lag    float64 // how late it is heard that others sent something, in round trips, see trips
}

// busyDoubt is by which part the requests at the server may be more or fewer than were counted,
// because the way of some takes longer than that of others.
const busyDoubt = .1

// begin makes p one that has seen nothing.
func (p *replay) begin(s *shape, t *timing) {
	p.n, p.nhints, p.blur, p.aside, p.vague = 0, 0, 0, math.Log1p(t.lag)*blurred, math.MinInt64/4
	if s.family == bucket {
		p.blur = float64(t.slack) / float64(s.per)
	}
}

// run replays the log for a shape. If it is in doubt when a request arrived, the instant counts
// at which the shape explains the answer best.
func (p *replay) run(s *shape, r *record, t timing) {
	p.begin(s, &t)
	if len(r.log) == 0 {
		return
	}
	from := r.from(s)
	r.passed += uint32(len(r.log) - from)
	st := s.begin(r.log[from].at + t.half)
	st.head = int32(from)
	cur := slot{level: -1, later: -1}
	last, e, epochs := uint16(0), (*epoch)(nil), r.finder() // the epoch that began last; nil: it is forgotten
	for i := from; i < len(r.log); i++ {
		l, begins := &r.log[i], false
		if l.refused > 0 && l.epoch != 0 && l.epoch != last {
			last, e = l.epoch, epochs.find(l.epoch)
			begins = e != nil
		}
		tells := l.refused > 0 && l.epoch != 0 && e != nil // the refusal is one of an epoch that is known
		early, own := 0.0, 0.0
		if tells || s.family == atOnce {
			early, own = s.early(&st, l, r.log, &t)
		}
		p.accepts(&cur, s, &st, l, r.log, &t)
		if l.refused == 0 {
			continue
		}
		if tells {
			cur.found(s, s.inUse(&st, max(l.at+t.half, st.start)), early, own)
		}
		banned := s.refuses(&st, l.last+t.half, t.slack)
		if begins {
			cur.void = banned
			p.ends(&cur, r, e, l, &st, s, &t)
			cur = slot{level: -1, later: -1}
		} else if tells && !banned {
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

// early is the level at the earliest arrival of l: units that stop counting soon still did. For a
// limit on requests at a time, of which st is made the state, it is how many may have been at the
// server, and own is how many of these were of this process.
func (s *shape) early(st *state, l *entry, log []entry, t *timing) (early, own float64) {
	if s.family != atOnce {
		return s.peek(st, l.at+t.half-t.slack, log, t.half), 0
	}
	all, some, most := l.level(t)
	st.level, own = all, min((1+busyDoubt)*some, most)
	return own + min((1+busyDoubt)*t.work, 1)*l.others(), own
}

// accepts adds what was accepted of l to st, and notes in cur what that shows of the size.
func (p *replay) accepts(cur *slot, s *shape, st *state, l *entry, log []entry, t *timing) {
	cur.broken = cur.broken || l.taken > 0 && st.barred > l.last+t.half+t.slack
	start, level := st.start, st.level
	s.spread(st, l, log, t.half)
	if st.start != start {
		level = 0
	}
	p.blurs(s, l, st, st.level-level, t)
	if l.taken > 0 {
		if x := p.reached(s, st, l, log, t); x > cur.reached {
			cur.reached = x
		}
	}
}

// found notes the level that a refusal found. At the earliest arrival it was early, and own is the
// part of it without what other processes sent, of requests at a time.
func (b *slot) found(s *shape, level, early, own float64) {
	b.sharp = level
	if b.level = level; early > level {
		b.level = early
	}
	b.own = b.level
	if s.family == atOnce {
		b.sharp, b.own = b.level, min(own, b.level)
	}
}

// blurs notes that the units of l count at uncertain times: if they are uneven, all of them, unless
// l is so short that it is as good as an instant; if the last window began between them, as many as
// it may have got more or fewer. within is how many count in the last window of st.
func (p *replay) blurs(s *shape, l *entry, st *state, within float64, t *timing) {
	span, units := l.last-l.at, float64(l.taken)
	switch {
	case l.uneven > 0 && span > max(s.per/16, t.slack):
		p.fewer, p.more = units, units
		if s.family == windowClock {
			p.fewer, p.more = within, units-within
		}
	case st.start-t.half > l.at && s.family >= windowFirst && s.family <= counter && l.last-p.vague >= 2*s.per:
		units = min(units, 1+float64(l.uneven)/4)
		p.fewer, p.more = units, units
	default:
		return
	}
	p.vague, p.vagueSpan = l.last, span
}

// reached is the level that the accepted units of an entry show, which were just added to st. It
// is the least that is possible, as nobody knows when each unit of a merged entry was sent.
func (p *replay) reached(s *shape, st *state, l *entry, log []entry, t *timing) float64 {
	if s.family == atOnce {
		return (1 - busyDoubt) * st.level
	}
	span := l.last - l.at
	if s.family == slidingLog && span > s.per { // they were not all in use at once
		n := float64(l.taken)
		even := n*float64(s.per)/float64(span) - float64(l.uneven)/2 // uneven bounds how far the number before a window and that up to its end are off
		return st.level - float64(l.under) - n + max(even, n/float64((span+2*t.slack)/s.per+1))
	}
	at := l.last + t.half + t.slack
	level := s.peek(st, at, log, t.half) - float64(l.under)
	if s.family == slidingLog && int(st.head) < len(log) { // of the oldest entry that counts, some units may count no more
		h := &log[st.head]
		if gone := at - s.per - t.half - h.at; gone >= 0 && h.last > h.at {
			n := h.units(s.refused)
			level -= min(n, 1+(n-1)*float64(gone)/float64(h.last-h.at)+float64(h.uneven)/4)
		}
	}
	switch {
	case s.family == bucket || l.last-p.vague >= 2*s.per || p.past(s, st, t):
	case l.last > p.vague || span > s.per:
		level -= p.fewer
	case s.family != slidingLog: // the border of a window may lie between its units
		level -= p.fewer / 2
	}
	return level
}

// past reports whether windows by a clock that count in state st began after the last entry whose
// units count at uncertain times: then none of these counts any more.
func (p *replay) past(s *shape, st *state, t *timing) bool {
	start := st.start - t.half - t.slack
	return s.family == windowClock && start > p.vague || s.family == counter && start-s.per > p.vague
}

// later notes one more refusal of the epoch that ended the last slot.
func (p *replay) later(level float64) {
	if b := &p.slots[p.n-1]; b.later < 0 || level < b.later {
		b.later = level
	}
}

// ends ends a slot with the first refusal of epoch e, which has entry l. st is the state when it
// arrived.
func (p *replay) ends(cur *slot, r *record, e *epoch, l *entry, st *state, s *shape, t *timing) {
	at := l.at + t.half
	cur.epoch = e.id
	shutOut := e.streak >= shutOutFrom
	cur.void = cur.void || shutOut
	cur.fade = r.cut && r.from(s) == 0 && (at-r.log[0].at < s.memory(1) || s.family == bucket && st.spare < cur.level)
	cur.clear = cur.level
	if age := l.at - p.vague; age < s.memory(max(1, cur.level)) && !p.past(s, st, t) {
		cur.level += p.more // it may have been as high as that
		if s.family == bucket && age < p.vagueSpan<<leastHalvings {
			cur.clear = cur.level // they were merged after the refusal: they last longer than a bucket's memory
		}
	}
	p.push(*cur)
	if e.hint >= 0 && !shutOut {
		h := &p.hints[p.nhints%hinted]
		h.st, h.at, h.hint = *st, at, e.hint
		p.nhints++
	}
}

// push adds a slot. If there is no room, the oldest is dropped.
func (p *replay) push(s slot) {
	if p.n == len(p.slots) {
		copy(p.slots[:], p.slots[1:])
		p.n--
	}
	p.slots[p.n] = s
	p.n++
}
