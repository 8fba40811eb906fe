package learn

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// An Instant is a moment of the caller's clock, which never steps back.
type Instant = meter.Instant

const never = meter.Never

// A Refusal is what a refusal said. The zero Refusal says nothing.
type Refusal struct {
	Hint     cooldown.Hint // how long to stay away
	Doubtful bool          // the reason may be no limit: the host may be down
	Alone    bool          // only what was refused keeps the hint: others do not wait for its end
	MaxPause time.Duration // the longest wait that is believed without support; zero: 5 min
}

// A Learner is what is known of the limits of one server, for one credential and
// one kind of request. It is told what is sent and how that ended, and its Next says when
// the next request may be sent. The zero Learner knows nothing and makes nobody wait. It is
// not safe for concurrent use.
type Learner struct {
	mind  *mind // nil: nothing was refused
	trips trips
	busy  int32 // requests under way
	past  past
	away  *away // what other processes sent; nil: nothing was heard of that
}

// A mind is the part of a Learner that is needed after a refusal.
type mind struct {
	bank     bank
	climb    climb
	widening widening
	pause    Instant // the server said: nothing before
	told     Instant // when the last hint ends, however far that is
	toldAt   Instant
	sentAt   Instant       // the last send
	refused  Instant       // when the last refusal was heard
	streak   Instant       // when the first refusal since the last acceptance was heard
	taken    Instant       // when the last acceptance was heard
	presumed Instant       // what was sent until then counts as accepted if it was not refused
	presumes Instant       // before then nothing more does
	trip     time.Duration // of the slowest refusal lately
	late     Instant       // when something is sent at the latest, unless something happens; see latest
	allow    float64       // requests at a time since the last epoch
	refusing bool          // it has refused something
	risk     float64       // sum over those under way of how likely each is refused
	plan     Plan          // the last, while nothing happens
	planned  Instant       // when it was made
	fresh    bool          // it still holds
	most     Instant       // the longest wait that nothing bears out
	lifted   bool          // one may go whatever is believed
	doubted  bool          // the last refusal may be no limit's
}

// think makes the mind that an event needs, which happens now.
func (l *Learner) think(now Instant) *mind {
	if l.mind == nil {
		l.mind = &mind{allow: math.Inf(1)}
		l.past.into(&l.mind.bank.record, int(l.busy)+1)
		l.mind.bank.grain = max(leastGrain, l.trips.slack())
		l.mind.bank.time(&l.trips)
		l.mind.bank.guessGone(now)
	}
	return l.mind
}

// Sent notes that a request is sent now.
func (l *Learner) Sent(now Instant) {
	if l.mind == nil {
		l.past.sent(now, 1, int(l.busy))
	} else {
		l.mind.send(now, 1, int(l.busy), l.theirs())
	}
	l.busy++
}

// Accepted notes that the request that was sent at sent was accepted.
func (l *Learner) Accepted(now, sent Instant) {
	l.ended(now, sent, false)
	m := l.mind
	if m == nil {
		return
	}
	m.bank.served.sample(float64(now - sent))
	m.bank.time(&l.trips)
	m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
	m.accepted(now, sent, 1)
}

// Refused notes that the request that was sent at sent was refused because of a limit. news says
// that it is not one more refusal of the same epoch.
func (l *Learner) Refused(now, sent Instant, r Refusal) (news bool) {
	l.ended(now, sent, true)
	m := l.think(now)
	m.trip = cooldown.Slowest(m.trip, now.Sub(sent))
	m.bank.time(&l.trips)
	m.bank.mean, m.bank.busy = l.trips.mean, int(l.busy)
	hint := Instant(-1)
	if r.Hint.Known {
		hint = m.believe(Instant(max(0, r.Hint.Wait)), now, r.maxPause())
	}
	m.most, m.doubted = r.maxPause(), r.Doubtful
	pause := m.pause
	if news = m.refuse(now, now, sent, hint, 1, m.climb.looks(sent)); r.Alone {
		m.pause = pause
	}
	m.bank.time(&l.trips) // it may be further off than was thought
	return news
}

func (r *Refusal) maxPause() Instant {
	if r.MaxPause <= 0 {
		return Instant(5 * time.Minute)
	}
	return Instant(r.MaxPause)
}

// believe bounds a hint by most. A longer one is believed up to cooldown.MostBelieved if
// another refusal, some time before, named the same instant.
func (m *mind) believe(hint, now, most Instant) Instant {
	hint = min(hint, 1e18)
	end := now + hint
	if off := end.Sub(m.told); m.told != 0 && now.Sub(m.toldAt) > 2*cooldown.MostSlack && off.Abs() <= cooldown.MostSlack {
		most = max(most, Instant(cooldown.MostBelieved))
	}
	m.told, m.toldAt = end, now
	return min(hint, most)
}

// Lost notes that the request that was sent at sent had no answer. The server may have
// counted it.
func (l *Learner) Lost(sent Instant) {
	l.busy--
	if l.mind != nil {
		if l.mind.fresh = false; !l.mind.widening.tried(sent) {
			l.mind.bank.accepted(sent, 1)
		}
	}
}

// Unsent notes that what Sent noted at sent was not sent after all.
func (l *Learner) Unsent(sent Instant) {
	l.busy--
	if l.mind == nil {
		l.past.unsent(sent)
		return
	}
	l.mind.bank.busy = int(max(0, l.busy))
	if l.mind.fresh = false; l.mind.widening.tried(sent) {
		return
	}
	if r := l.mind.bank.find(sent); r != nil {
		r.under -= min(r.under, 1)
		l.mind.bank.never(r)
		l.mind.bank.stale = true
	}
}

func (l *Learner) ended(now, sent Instant, refused bool) {
	l.busy--
	if l.mind != nil {
		l.mind.bank.left(now, sent, l.mind.bank.half, refused)
	}
	was := l.trips
	if l.trips.sample(now - sent); l.Crowded() && l.mind.widening.base > 0 {
		l.trips.least = min(was.least, l.trips.least) // answers take long because the server works, not because the way is long
		if refused {                                  // and it does not work on what it refuses
			l.trips.mean, l.trips.deviation = was.mean, was.deviation
		}
	}
}

func (m *mind) send(now Instant, n, busy, theirs int) {
	if m.plan.p < 1 {
		m.risk += 1 - m.plan.p
	}
	if !m.widening.sent(now, &m.plan, &m.bank) {
		m.climb.sent(now, &m.plan)
		m.bank.apart = m.plan.wide
		m.bank.send(now, n, busy, theirs)
	}
	m.plan.wide = false
	m.bank.busy = busy + 1
	m.sentAt, m.bank.event, m.late, m.fresh, m.lifted = now, now, 0, false, false
}

func (m *mind) accepted(now, sent Instant, n int) {
	m.fresh = false
	m.settle()
	ends := m.bank.endsRow(sent)
	m.taken, m.bank.event, m.late = now, now, 0
	try := m.widening.tried(sent)
	m.widening.accepted(sent, try, &m.bank)
	switch {
	case try:
	case m.widening.within(sent, &m.bank):
		m.bank.took(sent, n)
	default:
		m.bank.accepted(sent, n)
	}
	m.earn(n)
	m.climb.accepted(now, sent)
	if ends {
		m.bank.rebuild()
	}
	if m.bank.surprises >= m.bank.patience && len(m.bank.epochs) > 0 {
		m.bank.patience = min(2*m.bank.patience, mostPatience)
		m.bank.rebuild()
	}
}

// settle takes the risk of one that was answered out.
func (m *mind) settle() {
	m.risk -= m.risk / float64(max(1, m.bank.busy+1))
}

// Crowded reports whether the last refusal is most likely because of other requests under
// way. Then a pause is for the refused request alone: others may go when answers come.
func (l *Learner) Crowded() bool { return l.mind != nil && l.mind.crowded() }

func (m *mind) crowded() bool {
	return len(m.bank.of) > 0 && m.bank.of[0].family == atOnce && m.bank.of[0].weight > .6
}

// refuse takes in now that n units were refused that were sent at sent. Who sent them
// heard it at heard.
func (m *mind) refuse(now, heard, sent, hint Instant, n int, look bool) bool {
	m.fresh = false
	m.settle()
	m.bank.event, m.late = now, 0
	if try := m.widening.tried(sent); m.widening.refused(now, sent, try, &m.bank) {
		m.reached(now, sent, hint, n, try)
		return true
	}
	if look && m.bank.foreseen(sent) {
		m.looked(now, heard, sent, hint, n)
		return true
	}
	begins, foreseen := m.bank.refuses(now, sent, hint, n)
	if hint >= 0 && !m.crowded() {
		m.pause = max(m.pause, heard+hint)
	}
	if !begins {
		return false
	}
	if m.taken >= m.refused {
		m.streak = now
	}
	m.refused, m.bank.patience, m.bank.bears = now, firstPatience, 0
	m.climb.refused(now, sent, &m.bank)
	m.allow, m.refusing = 1, true // from 4 at a time on, three times the losses on train
	if hint >= 0 {
		m.bank.paused = hint
	}
	if !foreseen {
		m.bank.widen()
	}
	if len(m.bank.of) == 0 || !foreseen || m.bank.of[0].weight < .9 {
		m.bank.rebuild()
	} else {
		m.bank.refit()
	}
	return true
}
