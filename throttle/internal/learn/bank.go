package learn

const maxCandidates = 16 // they take 2 KB; more were not tried

// How many surprises (acceptances for which the leader had no room) begin a search:
// firstPatience, as one or two come by jitter, and twice as many after each search that no
// refusal began, up to mostPatience. So if nothing better than the leader is found, there are
// few searches, but they do not end.
const (
	firstPatience = 3
	mostPatience  = 256
)

// heavyAt is the weight from which on an acceptance against a candidate makes all be judged
// anew; lighter ones wait for the next refusal. If each acceptance against any of them did
// that, a call would cost 100 us.
const heavyAt = .02

// liveAt is the weight from which on a candidate counts for when something is sent.
const liveAt = .004

// A candidate is a limiter that the server may have.
type candidate struct {
	shape
	state
	size    float64 // in units
	score   float64 // logarithm of how likely it is, up to a constant
	against float64 // how much of that is evidence against it
	weight  float64 // how likely it is: all weights together are 1
	prior   float64 // how rare it is, as a logarithm; see propose
}

// alike reports whether d is the same limiter, apart from its size and small differences.
func (c *candidate) alike(d *candidate) bool {
	if c.family != d.family || c.refused != d.refused || c.again != d.again || c.ban != d.ban {
		return false
	}
	if c.family == atOnce {
		return true
	}
	if r := float64(c.per) / float64(d.per); r < .99 || r > 1.01 {
		return false
	}
	if c.family == windowClock || c.family == counter {
		return samePhase(c.phase, d.phase, c.per)
	}
	return true
}

// samePhase reports whether windows of length per that begin at x and at y are hardly apart.
func samePhase(x, y, per Instant) bool {
	off := mod(x-y, per)
	return min(off, per-off) < per/scanPhases
}

// A bank holds the candidates that explain what was seen best.
type bank struct {
	record
	timing
	of        []candidate // likeliest first, at most maxCandidates
	stale     bool        // the states are not those at the end of the log
	again     bool        // the last search found a leader that the limit has outgrown: search again in the next step
	extra     Instant     // slack beyond what the round trips suggest
	served    served      // round trips of what was accepted
	mean      Instant     // round trip
	flow      float64     // accepted a second, when all were judged last
	event     Instant     // the last time that something was sent or answered
	busy      int         // requests under way
	risen     uint16      // the epoch after which more was accepted than the leader bore; zero: never
	shown     shown       // more at a time than that
	paused    Instant     // the span that the server said last, beyond what was sent meanwhile
	live      int         // so many have weight enough that somebody asks when they have room: only their states are kept
	heavy     uint16      // bit i: candidate i has weight enough that an acceptance against it matters at once
	doubts    int         // acceptances against such, since all were judged
	bears     int         // so many before all are judged again; twice as many each time, until a refusal
	patience  int         // surprises until a search; twice as many after each that a refusal did not start
	shut      [2]spread   // how long bans may be: of those that the first refusal begins, and each anew; zero: none was seen
	surprises int         // acceptances that the leader had no room for, since it leads
	scanned   int         // usual periods for which scan has looked
	kin       *Kin        // what Learners have found whose limiters are probably alike; nil: nothing is known of any
}

// send notes n units that are sent now, and who had no room for them.
func (b *bank) send(now Instant, n, busy, theirs int) {
	if b.compact(now) {
		b.recount()
	}
	there := 0.0
	if !b.stale && b.crowds() {
		there, _ = b.atWork(now, busy)
	}
	l := b.sent(now, n, busy, theirs)
	if b.stale {
		return
	}
	at := now + b.half
	for i := range b.of[:b.live] {
		c := &b.of[i]
		if c.family == atOnce {
			c.level = there
		}
		c.pass(&c.state, at, b.log, b.half)
		if c.barred > at || c.peek(&c.state, at+b.slack, b.log, b.half)+float64(n) > c.size+1e-3 {
			l.against |= 1 << i
		}
		c.add(&c.state, at, float64(n))
	}
}

// crowds reports whether one of the live candidates is a limit on requests at a time.
func (b *bank) crowds() bool {
	for i := range b.of[:b.live] {
		if b.of[i].family == atOnce {
			return true
		}
	}
	return false
}

// recount brings the states in line with a log whose entries were merged. What was
// made of the evidence stays: nothing happened.
func (b *bank) recount() {
	if b.stale {
		return
	}
	for i := range b.of[:b.live] {
		c := &b.of[i]
		if c.family != slidingLog {
			continue
		}
		c.head, c.level = int32(b.from(&c.shape)), 0
		for k := int(c.head); k < len(b.log); k++ {
			c.level += b.log[k].units(c.refused)
		}
	}
}

// accepted notes that what was sent then was accepted.
func (b *bank) accepted(sent Instant, n int) {
	if l := b.took(sent, n); l != nil {
		b.counts(l)
	}
}

// counts takes in that a request of l was accepted.
func (b *bank) counts(l *entry) {
	if l.against&1 != 0 {
		b.surprises++
	}
	if l.against&b.heavy != 0 {
		if b.doubts++; b.doubts > b.bears {
			b.doubts, b.bears, b.stale = 0, min(2*b.bears+1, mostPatience), true
		}
	}
}

// took notes in the log alone that what was sent then was accepted, and returns its entry;
// nil: it is forgotten.
func (b *bank) took(sent Instant, n int) *entry {
	l := b.find(sent)
	if l != nil {
		l.under -= min(l.under, uint16(n))
		l.taken += uint16(n)
	}
	return l
}

// refuses notes a refusal. It reports whether it begins an epoch, and whether
// the leader had foreseen it.
func (b *bank) refuses(now, sent, hint Instant, n int) (begins, foreseen bool) {
	l := b.find(sent)
	if l == nil { // it was taken for accepted
		b.reopen(sent, n)
		l = b.find(sent)
	}
	if l != nil {
		foreseen = l.against&1 != 0
		l.under -= min(l.under, uint16(n))
		l.refused += uint16(n)
	}
	b.stale = true
	return b.record.refused(l, now, sent, hint), foreseen
}

// time takes in what is known of the way to the server.
func (b *bank) time(t *trips) {
	b.timing = t.timing()
	if b.served.n == 0 {
		b.served = served{float64(t.mean), float64(t.deviation), heardOf}
	}
	b.served.into(&b.timing)
	b.slack += min(b.extra, t.least)
}

// widen tries whether the leader would have foreseen a refusal, had arrivals been
// further off than they were thought to be. Requests that were sent in a burst
// come back to a border in one, so that the latest of many arrivals counts.
func (b *bank) widen() {
	if len(b.of) == 0 || b.of[0].weight < widenAt {
		return
	}
	c, old := b.of[0], b.slack
	var p replay
	b.fit(&c, &p)
	tight := c.against
	b.slack *= 2
	if b.fit(&c, &p); c.against < tight-.5 {
		b.extra += old
	} else {
		b.slack = old
	}
}

// widenAt is the weight that a leader needs so that a refusal which it did not foresee raises the
// doubt about arrivals: a leader of less weight is more likely to be wrong itself.
const widenAt = .5
