package learn

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Of a fleet, each process learns from what all of them send, as far as it hears of it.
// What others sent counts as though this Learner had sent it when it was heard of. It
// counts as accepted once it was heard, a round trip later, that it was not refused.

// away is what others sent lately.
type away struct {
	marks []mark  // oldest first, at most mostMarks
	busy  int32   // of those under way, so many are others'
	heard Instant // when all was heard that others had sent until then
}

type mark struct {
	at      Instant // when it was heard of
	from    Instant // when it was sent at the earliest
	n       int32
	settled bool // counts as accepted
}

const (
	mostMarks = 64 // 1.5 KB
	// keptFor is for how long units of others may prove to have been refused, or until it
	// is heard what was. After that they count as accepted even if nothing was heard: the
	// store may be gone.
	keptFor = 2 * Instant(1e9)
	// unknownTrip is how long an answer takes when none has come yet.
	unknownTrip = Instant(1e8)
)

// Elsewhere notes n units that others have sent.
func (l *Learner) Elsewhere(now Instant, n int) {
	n = max(0, min(n, maxUnits))
	if n == 0 {
		return
	}
	if l.away == nil {
		l.away = new(away)
	}
	a := l.away
	if len(a.marks) == mostMarks {
		l.settleMark(now, &a.marks[0])
		a.marks = slices.Delete(a.marks, 0, 1)
	}
	from := a.heard
	if l.mind != nil {
		from = max(from, min(now, l.mind.pause)) // the others were asked to wait, too
	}
	a.marks = append(a.marks, mark{at: now, from: from, n: int32(n)})
	if l.mind == nil {
		l.past.sent(now, n, int(l.busy))
	} else {
		m := l.mind
		m.plan, m.fresh = Plan{At: never, p: 1}, false // it was not made for them
		m.bank.time(&l.trips)
		m.send(now, n, int(l.busy), int(l.busy)) // nobody knows which of them were under way beside these
	}
	l.busy += int32(n)
	a.busy += int32(n)
	if a.heard != 0 {
		l.trips.unheard(min(now-a.heard, keptFor)) // whatever was sent before is over
	}
}

// theirs is how many of those under way others sent.
func (l *Learner) theirs() int {
	if l.away == nil {
		return 0
	}
	return int(l.away.busy)
}

// Supposed notes n units that others are taken to have sent, of which nothing will be
// heard: they use up what there is, and are evidence of nothing.
func (l *Learner) Supposed(now Instant, n int) {
	if m := l.mind; m != nil && n > 0 {
		l.trips.late = 0                               // as nothing is heard, all that others send may be under way
		m.plan, m.fresh = Plan{At: never, p: 1}, false // it was not made for them
		m.bank.time(&l.trips)
		m.bank.send(now, min(n, maxUnits), int(l.busy), int(l.busy))
	}
}

// ElsewhereRefused notes that n units of others were refused: those that were heard
// of last, of those that were sent so long ago that a refusal can have been heard of. asked
// is how long they were asked to wait, negative: they were not; most is as
// Refusal.MaxPause.
func (l *Learner) ElsewhereRefused(now Instant, n int, asked, most time.Duration) {
	if l.away == nil {
		return
	}
	m := l.think()
	m.bank.time(&l.trips)
	m.most = Instant(most)
	hint := Instant(-1)
	if asked >= 0 {
		hint = min(Instant(asked), Instant(most))
	}
	last := len(l.away.marks) - 1
	for last > 0 && l.away.marks[last].from+l.trips.mean > now {
		last--
	}
	for j := range l.away.marks {
		i := last - j
		if i < 0 { // of these, too, if the others were not so many
			i = j
		}
		a := &l.away.marks[i]
		k := min(int(a.n), n)
		n -= k
		if k == 0 {
			continue
		}
		if a.n -= int32(k); a.settled {
			m.bank.reopen(a.at, k)
		} else {
			l.busy -= int32(k)
			l.away.busy -= int32(k)
		}
		m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
		if x := m.bank.find(a.at); x != nil && x.against&1 != 0 && !m.bank.within(a.at) {
			m.climb.fail(now) // it was to find out whether more passes, for all
		}
		m.refuse(now, min(now, a.at+l.usual()), a.at, hint, k)
	}
	l.away.marks = slices.DeleteFunc(l.away.marks, func(a mark) bool { return a.n == 0 })
}

// reopen makes n units that were taken for accepted units under way.
func (r *record) reopen(sent Instant, n int) {
	if i := r.last(sent); i >= 0 {
		x := &r.log[i]
		k := min(x.taken, uint16(n))
		x.taken -= k
		x.under += k
	}
}

// Heard notes that all is known which others were refused until now: what they sent a
// round trip ago was accepted.
func (l *Learner) Heard(now Instant) {
	l.settle(now, l.usual())
	a := l.away
	if a == nil {
		return
	}
	old := 0
	for old < len(a.marks) && a.marks[old].at+keptFor < now {
		old++
	}
	a.marks = slices.Delete(a.marks, 0, old)
	a.heard = now
}

// settle takes for accepted what was sent so long ago.
func (l *Learner) settle(now, ago Instant) {
	if l.away == nil {
		return
	}
	for i := range l.away.marks {
		a := &l.away.marks[i]
		if a.at+ago > now {
			break
		}
		l.settleMark(now, a)
	}
}

func (l *Learner) settleMark(now Instant, a *mark) {
	if a.settled {
		return
	}
	a.settled = true
	l.busy -= a.n
	l.away.busy -= a.n
	if m := l.mind; m != nil {
		m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
		m.accepted(now, a.at, int(a.n))
		m.allow = min(m.allow+float64(a.n-1), 1<<10)
	}
}

// usual is how long it usually takes until a refusal can be heard of.
func (l *Learner) usual() Instant {
	if l.trips.mean == 0 {
		return unknownTrip
	}
	return (l.trips.mean + 2*l.trips.off) * 3 / 2
}

// Lands is when the next of what others sent counts as accepted, if no refusal is heard
// of before. Next is to be asked again then.
func (l *Learner) Lands() Instant {
	if l.away != nil {
		for i := range l.away.marks {
			if a := &l.away.marks[i]; !a.settled {
				return a.at + l.usual()
			}
		}
	}
	return never
}

// Unlimited is more units than any limit has.
const Unlimited = math.MaxInt32

// Room is how many units more all may send now: as many as the candidates hold by half of
// the weight of all. If these hold none, one process may still send one, as Next says, to
// find out; two that do so at once are one too many.
func (l *Learner) Room(now Instant) int { return l.room(now, 0) }

// Hope is how many units all may send now if one may: as many as those candidates hold, by
// half of their weight, that have room for one.
func (l *Learner) Hope(now Instant) int { return l.room(now, 1) }

// room is what those candidates hold, by half of their weight, that have room for least.
func (l *Learner) room(now Instant, least float64) int {
	m := l.mind
	if m == nil || len(m.bank.of) == 0 || !m.refusing {
		return Unlimited
	}
	if m.plan.Reason == Found || m.pause > now {
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
		if sum += x.weight; sum >= mostOf*total {
			room = x.room
			break
		}
	}
	return int(max(0, min(room, m.allow-float64(l.busy))))
}

// room is how many units a candidate has room for now.
func (b *bank) room(c *candidate, now Instant) float64 {
	if b.ready(c, now, 1) > now {
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

// within reports whether what was sent then is no later than the last epoch.
func (r *record) within(sent Instant) bool {
	k := len(r.epochs)
	return k > 0 && sent < r.epochs[k-1].heard
}
