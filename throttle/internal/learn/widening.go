package learn

import (
	"math"
	"slices"
)

// A widening is the search for more requests at a time than the leader bears, if it counts
// those under way. While others wait, one more than that is sent: a try. If it is refused,
// that is what the leader expects. So nothing else is made of it: the log has no tries. The
// next one comes twice as long afterwards. If a try is accepted, one more goes for each that
// is accepted, as in TCP's slow start: those under way double with each round trip, until
// one is refused. As many as were under way then are the new limit.
type widening struct {
	fails float64 // searches in vain, lately
	ended Instant // when the last one ended, and fails was true
	try   Instant // when the try was sent that is under way; zero: none is
	vain  bool    // it was refused, or another in its place
	from  Instant // when the try was sent that began the last search; zero: there was none
	until Instant // when that ended; zero: it has not
	base  float64 // what the leader bore when the try was sent
	level float64 // so many may be at the server
	most  float64 // so many were
}

// shown is what a search found.
type shown struct {
	size  float64 // so many at a time are borne, and no more; zero: none found anything
	epoch uint16  // the last before that
}

const (
	triesApart = 50 // times the price of a try pass before the first: so it costs a fiftieth of that time, and each in vain half of that
	triesUnits = 2  // of the rate are the least price: then at most one request of a hundred is a try
	tryLate    = .5 // of the time between two answers is how long a try waits after another request: just after that the server is fullest
)

// may reports whether nothing but the number under way stands against one more.
func (r *widening) may(m *mind) bool {
	b := &m.bank
	return (m.crowded() || r.searches(b)) && m.taken >= m.refused && b.ready(&b.of[0], m.planned) > m.planned
}

// wider lets one more go than the leader bears if nothing was refused for long, or all
// that a search allows.
func (r *widening) wider(now Instant, p Plan, m *mind) Plan {
	b := &m.bank
	late := Instant(1) // so that it is known by when it was sent
	if r.searches(b) {
		if b.work*float64(b.busy)+1 > r.level {
			return p
		}
	} else {
		unit := float64(b.mean) / b.of[0].size
		price := max(leastPrice, float64(b.paused), triesUnits*unit)
		if r.try != 0 || float64(now-max(m.climb.idle, m.refused, r.ended)) < triesApart*price*math.Exp2(r.lately(now)) {
			return p
		}
		late = max(late, Instant(tryLate*unit))
	}
	return Plan{At: max(now, m.sentAt+late), Reason: Found, p: 1, wide: true}
}

// searches reports whether a search goes on.
func (r *widening) searches(b *bank) bool {
	return r.from > 0 && r.until == 0 && b.of[0].family == atOnce
}

// within reports whether what was sent then is of the last search.
func (r *widening) within(sent Instant, b *bank) bool {
	return r.from > 0 && sent >= r.from && (sent < r.until || r.searches(b))
}

// lately is how many searches were in vain, each of which counts half after a while.
func (r *widening) lately(now Instant) float64 {
	return r.fails * math.Exp2(-float64(now-r.ended)/failHalves)
}

// sent reports whether what is sent now is a try.
func (r *widening) sent(now Instant, p *Plan, b *bank) bool {
	if !p.wide || r.try != 0 || now < p.At || r.searches(b) {
		return false
	}
	r.try, r.vain, r.base = now, false, b.of[0].size
	return true
}

// tried reports whether what was sent then is the try, which is answered now or never.
func (r *widening) tried(sent Instant) bool {
	if r.try == 0 || sent != r.try {
		return false
	}
	r.try = 0
	return true
}

// accepted takes in that what was sent then was accepted.
func (r *widening) accepted(sent Instant, try bool, b *bank) {
	switch {
	case try && !r.vain:
		r.from, r.until, r.level, r.most = sent, 0, r.base+2, r.base+1
	case r.within(sent, b) && r.searches(b):
		at := 0.0
		if l := b.find(sent); l != nil {
			at, _, _ = l.level(&b.timing)
		}
		r.most = max(r.most, min(at, r.level))
		if at+1 > r.level { // else there were not as many
			r.level++
		}
	}
}

// refused takes in that what was sent then was refused. It reports whether nothing is to
// be made of that but what it says here.
func (r *widening) refused(now, sent Instant, try bool, b *bank) bool {
	switch {
	case try && r.vain:
	case try, r.try != 0 && !r.vain && sent > r.try: // one in whose place the try was accepted
		r.vain = true
		r.fail(now)
	case r.within(sent, b):
		if r.until == 0 {
			if l := b.find(sent); l != nil {
				all, _, _ := l.level(&b.timing)
				r.most = all - 1
			}
			r.end(now, b)
		}
	default:
		r.from = 0
		return false
	}
	return true
}

func (r *widening) fail(now Instant) { r.fails, r.ended = r.lately(now)+1, now }

// end ends a search. All of what the leader was judged by may have left the log, so that to
// judge it again would let others take the lead: it is told what was found.
func (r *widening) end(now Instant, b *bank) {
	r.until = now
	size := math.Floor(r.most + almost)
	if size <= r.base {
		r.fail(now)
		return
	}
	r.fails, r.ended = 0, now
	b.shown = shown{size, b.lastID}
	for i := range b.of {
		if c := &b.of[i]; c.family == atOnce {
			c.size = size
		}
	}
}

// into puts what was shown in its place among what the epochs ask of a size, and returns
// the epoch after which the limit rose.
func (s *shown) into(p *replay) (risen uint16) {
	i := slices.IndexFunc(p.slots[:p.n], func(x slot) bool { return x.epoch == 0 || int16(x.epoch-s.epoch) > 0 })
	if s.size == 0 || i < 0 || p.n == len(p.slots) {
		return p.risen
	}
	copy(p.slots[i+1:p.n+1], p.slots[i:p.n])
	p.slots[i] = slot{reached: s.size, level: s.size, later: -1}
	p.n++
	return s.epoch
}

// reached notes that a search was refused one. A wait that the server asks for is that of
// the refused one alone, as always where others under way are why.
func (m *mind) reached(now, sent, hint Instant, n int, try bool) {
	if !try && m.bank.find(sent) != nil {
		m.bank.bounced(sent, n)
	}
	if hint < 0 {
		return
	}
	if m.bank.paused = hint; !m.crowded() {
		m.pause = max(m.pause, now+hint)
	}
}
