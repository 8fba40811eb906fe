package learn

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// In a fleet, each process learns from what all of them send, as far as it hears of that. A unit
// that another process sent counts as under way from when it is heard of. It counts as accepted
// a round trip later, if no refusal was heard of until then.

// away is what other processes sent lately.
type away struct {
	batches []batch // oldest first, at most mostBatches
	busy    int32   // units of others that count as under way
	heard   Instant // when Heard was called last: all that others sent before was known then; zero: never
}

// A batch is what others sent that was heard of at once.
type batch struct {
	at      Instant // when it was heard of
	from    Instant // when it was sent at the earliest
	n       int32   // units that were not refused
	settled bool    // it counts as accepted
}

const (
	// mostBatches bounds the memory of a Learner: they take 1.5 KB. If there are more, the oldest
	// counts as accepted.
	mostBatches = 64
	// keptFor is for how long after a batch was heard of a refusal is taken for one of its
	// units. If Heard was not called until then, because the store may be gone, the batch counts
	// as accepted. A store that answers is asked more often, see fleet.AskPause.
	keptFor = 2 * Instant(1e9)
	// unknownTrip is how long an answer is taken to take when none has come yet.
	unknownTrip = Instant(1e8)
)

// maxUnits is the most that others are heard of at once: a log counts in 16 bits.
const maxUnits = 1 << 14

// Elsewhere notes that n units were heard of now which other processes have sent.
func (l *Learner) Elsewhere(now Instant, n int) {
	n = max(0, min(n, maxUnits))
	if n == 0 {
		return
	}
	if l.away == nil {
		l.away = new(away)
	}
	a := l.away
	if len(a.batches) == mostBatches {
		l.settleBatch(now, &a.batches[0])
		a.batches = slices.Delete(a.batches, 0, 1)
	}
	from := a.heard
	if l.mind != nil {
		from = max(from, min(now, l.mind.pause)) // the others wait for the end of a pause, too
	}
	a.batches = append(a.batches, batch{at: now, from: from, n: int32(n)})
	if l.mind == nil {
		l.past.sent(now, n, int(l.busy))
	} else {
		m := l.mind
		m.plan, m.fresh = Plan{At: never, p: 1}, false // the plan was for a request of this process
		m.bank.time(&l.trips)
		m.send(now, n, int(l.busy), int(l.busy)) // nobody knows what was under way when these were sent
	}
	l.busy += int32(n)
	a.busy += int32(n)
	if a.heard != 0 {
		l.trips.unheard(min(now-a.heard, keptFor)) // what was sent earlier than that counts as over
	}
}

// theirs is how many of the units under way others sent.
func (l *Learner) theirs() int {
	if l.away == nil {
		return 0
	}
	return int(l.away.busy)
}

// Supposed notes n units that others are assumed to have sent, without hearing from them. They
// use up what there is room for. They never count as accepted or refused.
func (l *Learner) Supposed(now Instant, n int) {
	if m := l.mind; m != nil && n > 0 {
		l.trips.lag = 0                                // others are not heard of: whatever they send may be under way at any time
		m.plan, m.fresh = Plan{At: never, p: 1}, false // the plan was for a request of this process
		m.bank.time(&l.trips)
		m.bank.send(now, min(n, maxUnits), int(l.busy), int(l.busy))
	}
}

// ElsewhereRefused notes that n units of others were refused. Nobody knows which. They are taken
// for the last that were sent at least a round trip ago, as an answer takes so long. asked is how
// long the server asked to wait; negative: it did not. most is as Refusal.MaxPause.
func (l *Learner) ElsewhereRefused(now Instant, n int, asked, most time.Duration) {
	if l.away == nil || n == 0 {
		return
	}
	m := l.think(now)
	m.bank.time(&l.trips)
	m.most = Instant(most)
	hint := Instant(-1)
	if asked >= 0 {
		hint = min(Instant(asked), Instant(most))
	}
	last := len(l.away.batches) - 1
	for last > 0 && l.away.batches[last].from+l.trips.mean > now {
		last--
	}
	for j := range l.away.batches {
		i := last - j
		if i < 0 { // then those that were sent later
			i = j
		}
		a := &l.away.batches[i]
		if k := min(int(a.n), n); k > 0 {
			n -= k
			l.refuseBatch(now, a, k, hint)
		}
	}
	l.away.batches = slices.DeleteFunc(l.away.batches, func(a batch) bool { return a.n == 0 })
}

// ElsewhereUnsent takes back one unit of others, the last of those that do not count as accepted
// yet: it was refused, but not because of a limit.
func (l *Learner) ElsewhereUnsent() {
	if l.theirs() == 0 {
		return
	}
	a := l.away.batches
	for i := len(a) - 1; i >= 0; i-- {
		if !a[i].settled && a[i].n > 0 {
			a[i].n--
			l.away.busy--
			l.Unsent(a[i].at)
			return
		}
	}
}

// refuseBatch takes k units of a for refused.
func (l *Learner) refuseBatch(now Instant, a *batch, k int, hint Instant) {
	m := l.mind
	if a.n -= int32(k); a.settled {
		m.bank.reopen(a.at, k)
	} else {
		l.busy -= int32(k)
		l.away.busy -= int32(k)
	}
	m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
	x := m.bank.find(a.at)
	look := x != nil && x.against&1 != 0 && !m.bank.within(a.at) // another process tried for all whether more is accepted
	if look {
		m.climb.fail(now)
	}
	m.refuse(now, min(now, a.at+l.usual()), a.at, hint, k, look)
}

// Heard notes that all refusals of others until now are known. So what they sent a round trip
// ago or earlier was accepted.
func (l *Learner) Heard(now Instant) {
	l.settle(now, l.usual())
	a := l.away
	if a == nil {
		return
	}
	old := 0
	for old < len(a.batches) && a.batches[old].at+keptFor < now {
		old++
	}
	a.batches = slices.Delete(a.batches, 0, old)
	a.heard = now
}

// settle takes for accepted what others sent, if it was heard of at least ago before now.
func (l *Learner) settle(now, ago Instant) {
	if l.away == nil {
		return
	}
	for i := range l.away.batches {
		a := &l.away.batches[i]
		if a.at+ago > now {
			break
		}
		l.settleBatch(now, a)
	}
}

// settleBatch takes a for accepted.
func (l *Learner) settleBatch(now Instant, a *batch) {
	if a.settled {
		return
	}
	a.settled = true
	l.busy -= a.n
	l.away.busy -= a.n
	if m := l.mind; m != nil {
		m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
		m.accepted(now, a.at, int(a.n))
	}
}

// usual is how long after a request was sent its refusal is heard of, if there is one: nearly all
// trips are shorter than the mean and two deviations, and half as much again is left for the way
// through the store.
func (l *Learner) usual() Instant {
	if l.trips.mean == 0 {
		return unknownTrip
	}
	return (l.trips.mean + 2*l.trips.deviation) * 3 / 2
}

// Lands is when the next batch counts as accepted, if no refusal is heard of before. Next should
// be called again then.
func (l *Learner) Lands() Instant {
	if l.away != nil {
		for i := range l.away.batches {
			if a := &l.away.batches[i]; !a.settled {
				return a.at + l.usual()
			}
		}
	}
	return never
}

// Unlimited is what Room returns if there is no limit.
const Unlimited = math.MaxInt32

// Room is how many units all processes together may send now: the largest number for which
// candidates of half of the weight have room. Even if that is zero, Next may let one be sent to
// find out. Then only one process may do so: two at once are one too many.
func (l *Learner) Room(now Instant) int {
	if m := l.mind; m != nil && m.refusing && m.plan.Reason == Found {
		return 0
	}
	return l.room(now, 0)
}

// Hope is Room if it is taken for granted that there is room for one unit: candidates that have
// none do not count. They do if the plan is to find out whether more is accepted, because they
// are why that is to be found out. It is not zero then: who waits until others have used
// what there is room for would wait for ever, as that plan holds until something happens.
func (l *Learner) Hope(now Instant) int {
	if m := l.mind; m != nil && m.plan.Reason == Found {
		return l.room(now, 0)
	}
	return l.room(now, 1)
}

// room is Room among the candidates that have room for at least least units.
func (l *Learner) room(now Instant, least float64) int {
	m := l.mind
	if m == nil || len(m.bank.of) == 0 || !m.refusing {
		return Unlimited
	}
	if m.pause > now {
		return 0
	}
	if m.bank.stale {
		m.bank.refit()
	}
	type has struct{ room, weight float64 }
	var buf [maxCandidates]has
	k, total := 0, 0.0
	for i := range m.bank.of {
		c := &m.bank.of[i]
		if room := m.bank.room(c, now); room >= least {
			buf[k] = has{room, c.weight}
			total += c.weight
			k++
		}
	}
	list := buf[:k]
	slices.SortFunc(list, func(a, b has) int { return cmp.Compare(b.room, a.room) })
	room, sum := 0.0, 0.0
	for _, x := range list {
		if sum += x.weight; sum >= majority*total {
			room = x.room
			break
		}
	}
	return int(max(0, min(room, m.allow-float64(l.busy))))
}

// room is how many units a candidate has room for now.
func (b *bank) room(c *candidate, now Instant) float64 {
	if b.ready(c, now) > now {
		return 0
	}
	if c.family == atOnce {
		return c.size - b.work*float64(b.busy)
	}
	at := now + b.half
	st := c.state
	c.pass(&st, at, b.log, b.half)
	return c.size - c.peek(&st, at, b.log, b.half)
}
