package learn

import (
	"math"
	"slices"
	"time"
)

// leastWork is the part of a round trip for which a server has to work so that a limit on
// requests at a time is proposed. If it works less, few requests are at the server at a time,
// however many are under way.
const leastWork = .15

// namesPeriod is the least hint of a usual period that is hardly the rest of a longer window by
// chance: the window is then likely as long as the hint. Shorter ones are often round by chance.
// With 10 s, a limit that was exceeded once at a low rate grew back in half of its pace.
const namesPeriod = Instant(30 * time.Second)

// lonePhase is how rare a window by a clock is whose phase one epoch alone shows, as some phase
// explains any answer. Two epochs show the same phase by chance once in eight times, see agrees.
// Without it, a server of 20 a second, sliding, that always says a second served .86 of what it
// could: each answer looked like the border of another clock.
var lonePhase = math.Log(8)

// rareCounter is how rare counters of two windows are.
const rareCounter = 1.6

// propose calls try with every limiter that may explain the log: the usual ones, and
// those that the log suggests.
//
// A prior is how much rarer a limiter is than a sliding log of a usual period, as a logarithm.
// Priors are guesses. A few refusals that a limiter does not explain outweigh them, see
// againstRefused.
func (b *bank) propose(try func(candidate)) {
	if len(b.epochs) == 0 || len(b.log) == 0 {
		return
	}
	for _, u := range usual {
		b.windows(Instant(u.per), u.cost, try)
	}
	e := &b.epochs[len(b.epochs)-1]
	if e.hint > 0 {
		b.windows(e.hint, oddPeriod(e.hint), try)
		if start := b.burst(e); start > 0 {
			if p := wholeSpan(e.heard + e.hint - start); p > 0 {
				b.windows(p, oddPeriod(p), try)
			}
		}
	}
	b.between(try)
	b.buckets(e, try)
	b.bans(try)
	if b.work > leastWork {
		try(candidate{shape: shape{family: atOnce, per: max(1, b.mean)}, prior: .8})
	}
}

// windows proposes all families with windows of a period. cost is how rare the period is, as a
// logarithm. People write no windows of less than a tenth of a second, or of more than a day; an
// hour more is left for hints that name the end of a day.
func (b *bank) windows(per Instant, cost float64, try func(candidate)) {
	if per < 1e8 || per > 25*Instant(time.Hour) {
		return
	}
	for _, refused := range [...]bool{false, true} {
		c := cost
		if refused {
			if !b.moreRefused() {
				break
			}
			c += 1.2 // few servers count them
		}
		try(candidate{shape: shape{family: slidingLog, refused: refused, per: per}, prior: c + .2})
		try(candidate{shape: shape{family: windowFirst, refused: refused, per: per}, prior: c + .2})
	}
	var borders [8]border
	n := 0
	for i := len(b.epochs) - 1; i >= 0 && n < 4; i-- {
		e, luck := &b.epochs[i], 0.0
		if e.hint >= namesPeriod && e.hint < per && oddPeriod(e.hint) < 1 {
			luck = math.Log(float64(per) / float64(e.hint))
		}
		if t := b.nextTaken(e.heard); t > 0 {
			borders[n], n = border{b.half + max(t-b.slack, b.lastRefused(i, t)+1), i, luck}, n+1
		}
		if e.hint > 0 {
			borders[n], n = border{e.heard - b.half + e.hint, i, luck}, n+1
		}
	}
	for i, x := range borders[:n] {
		if !x.agrees(borders[:n], per) {
			x.luck += lonePhase
		}
		try(candidate{shape: shape{family: windowClock, per: per, phase: mod(x.at, per)}, prior: cost + x.luck + 1.2})
		if i == 0 {
			try(candidate{shape: shape{family: counter, per: per, phase: mod(x.at, per)}, prior: cost + x.luck + rareCounter})
		}
	}
}

// A border is where a window may begin by what one epoch shows.
type border struct {
	at    Instant
	epoch int
	luck  float64 // how unlikely it is there, as a logarithm
}

// agrees reports whether another epoch shows the same border, or one whole periods away.
func (x *border) agrees(all []border, per Instant) bool {
	return slices.ContainsFunc(all, func(y border) bool {
		return y.epoch != x.epoch && samePhase(x.at, y.at, per)
	})
}

// moreRefused reports whether more than one unit was refused, so that it matters whether the
// server counts refused requests.
func (b *bank) moreRefused() bool {
	n := 0
	for i := range b.log {
		n += int(b.log[i].refused)
	}
	return n > 1
}

// nextTaken is when the first request was sent, at t or later, that was accepted; 0: none was.
func (b *bank) nextTaken(t Instant) Instant {
	for i := range b.log {
		if l := &b.log[i]; l.at >= t && l.taken > 0 {
			return l.at
		}
	}
	return 0
}

// lastRefused is when the last request that begins an epoch, from the i-th on, was sent before t.
func (b *bank) lastRefused(i int, t Instant) (sent Instant) {
	for ; i < len(b.epochs) && b.epochs[i].sent < t; i++ {
		sent = b.epochs[i].sent
	}
	return sent
}

// burst is when the burst began that ended in e: its first request was the first one accepted after
// the last pause before e. A request that is refused in the middle of a pause does not end the pause.
func (b *bank) burst(e *epoch) Instant {
	start, last := Instant(0), Instant(0)
	for i := range b.log {
		l := &b.log[i]
		if l.at >= e.heard {
			break
		}
		if l.taken == 0 {
			continue
		}
		if start == 0 || l.at-last > max(2*(last-start), 4*b.half) {
			start = l.at
		}
		last = l.last
	}
	return start
}

// wholeSpan is the roundest time that becomes d when it is rounded up to a whole second.
func wholeSpan(d Instant) Instant {
	s := Instant(time.Second)
	return Instant(roundest(float64(max(s/2, d-s))/1e9, float64(d)/1e9) * 1e9)
}

// between proposes a period for each of the last epochs: longer than the time from the start of
// its burst to its last refusal, and no longer than that to the next acceptance. And it proposes one
// that as many of all epochs as possible agree on, from the last one back.
func (b *bank) between(try func(candidate)) {
	var agreed spread
	for i := range b.epochs {
		e := &b.epochs[i]
		next, start := b.nextTaken(e.heard), b.burst(e)
		if next == 0 || start == 0 {
			continue
		}
		lo, hi := max(Instant(1e8), b.lastRefused(i, next)-start), next-start+b.slack
		agreed.within(lo, hi, false)
		if i >= len(b.epochs)-3 {
			b.period(lo, hi, try)
		}
	}
	if agreed.rows > 1 {
		b.period(agreed.lo, agreed.hi, try)
	}
}

// period proposes the least odd period from lo to hi.
func (b *bank) period(lo, hi Instant, try func(candidate)) {
	p := Instant(roundest(float64(lo)/1e9, float64(hi)/1e9) * 1e9)
	if whole := Instant(roundestCount(float64(lo)/1e9, float64(hi)/1e9) * 1e9); whole > 0 && oddPeriod(whole) < oddPeriod(p) {
		p = whole
	}
	b.windows(p, oddPeriod(p), try)
}

// buckets proposes buckets: of round rates near the pace of what was accepted, from a sixth of it
// to three times it, and of rates that explain how much was accepted between two refusals.
func (b *bank) buckets(e *epoch, try func(candidate)) {
	flow := func(rate, cost float64) {
		if rate > 1e-4 && rate < 1e5 {
			try(candidate{shape: shape{family: bucket, per: Instant(1e9 / rate)}, prior: cost})
		}
	}
	pace := b.pace()
	top := max(3*pace, b.closest())
	for unit := decade(pace / 6); unit < top; unit *= 10 {
		for _, m := range [...]float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
			if r := m * unit; r > pace/6 && r < top {
				flow(r, .3+.6*odd(m))
			}
		}
	}
	for _, m := range [...]float64{1, 2, 3, 5, 6, 10, 12, 15, 20, 30} { // so many a minute
		if r := m / 60; r > pace/6 && r < pace*3 {
			flow(r, .6+.5*odd(m))
		}
	}
	if e.hint > 0 && e.hint%1e9 != 0 {
		flow(1e9/float64(e.hint), 1)
	}
	// From a full bucket to a full bucket it is off by a unit at most: the longer ago, the better is
	// the rate known, but the more likely the bucket ran empty.
	for i := len(b.epochs) - 1; i > 0 && i >= len(b.epochs)-2; i-- {
		for _, j := range [...]int{i - 1, i - 3, i - 7, i - 15} {
			if j < 0 {
				continue
			}
			from, to := b.epochs[j].sent, b.epochs[i].sent
			k, t := b.takenBetween(from, to), float64(to-from)/1e9
			if k >= 1 && t > 0 {
				r := roundest(max(.3, k-.9)/t, (k+.9)/t)
				flow(r, .8+.5*odd(r))
			}
		}
	}
}

func (b *bank) takenBetween(from, to Instant) (n float64) {
	for i := range b.log {
		if l := &b.log[i]; l.at > from && l.at <= to {
			n += float64(l.taken)
		}
	}
	return n
}

// pace is how many units were accepted per second, as far back as the log reaches.
func (b *bank) pace() float64 {
	if len(b.log) == 0 {
		return 1e-3
	}
	n, log := 0.0, b.log[b.from(new(shape)):]
	for i := range log {
		n += float64(log[i].taken)
	}
	last := log[len(log)-1].last
	return max(1e-3, n) / max(1e-3, float64(last-log[0].at+2*b.half)/1e9)
}

// closest is the highest rate that a bucket may have. It is the inverse of the shortest time
// from a request to a later one that was refused: even a bucket of one unit would have accepted
// that at a higher rate. The doubt about arrivals bounds it.
func (b *bank) closest() float64 {
	least, last := never, Instant(0)
	for i := range b.log {
		l := &b.log[i]
		if l.taken+l.refused == 0 {
			continue
		}
		if last != 0 && l.refused > 0 {
			least = min(least, l.at-last)
		}
		last = l.last
	}
	return 1e9 / float64(max(least, b.slack, 1e4))
}
