package learn

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A Reason is why a request has to wait, or why it need not.
type Reason uint8

const (
	Free      Reason = iota // it need not wait
	Asked                   // the server asked for a pause
	Believed                // the likeliest limits have no room
	Found                   // likewise, but it is sent earlier than that, to find out whether more is accepted
	Untrusted               // after a refusal few requests may be under way, until answers come
)

// A Plan is when a request may be sent.
type Plan struct {
	At     Instant // now or later; never: not before the next answer
	Reason Reason  // Asked: At is what the server said. Otherwise it is a guess, which may change
	p      float64 // how likely the request is accepted then
	wide   bool    // with it, one request more is under way than the leader allows, see widening
}

const (
	// mostRisk is how many refusals may be expected of the requests under way. With .7, time p90
	// was 4.5 instead of 4.1 on train.
	mostRisk = 1.5
	// riskEarned is added to mostRisk for each request that was accepted since the last refusal.
	// With .02, nothing changed on train.
	riskEarned = .005
	// lateBy bounds a wait: it is at most so many times as long as until candidates of half of the
	// weight have room. If they are right, the rest costs a quarter more time. If they are wrong,
	// that is found out.
	lateBy = 1.25
	// sureWeight is the least weight of a leader that is trusted, with those that agree with it: a
	// window and a log of 1 in 3 min may share the weight, and neither has enough by itself. While
	// they have less, and the server named no wait, no wait is longer than a guessed pause may be,
	// see cooldown.LongestGuess.
	sureWeight = .5
	// doubtWait is the longest wait while the host may be down, so that it is used again a second
	// after it is back. If a quarter (doubtPart) of the time for which it has refused is longer,
	// that is the longest wait.
	doubtWait = 1e9
	doubtPart = 4
	// majority is the part of all weights that makes something likelier than not.
	majority = .5
	// farLonger is for how many times the usual time answers are awaited. A request that takes
	// longer is taken for a long poll.
	farLonger = 16
	// streakPart says that between two requests of a long streak of refusals a quarter of the time
	// since it began passes. Then nothing but a ban or an outage explains the streak, and its end
	// is noticed late by a quarter of its length at most.
	streakPart = 4
)

// Next says when a request may be sent. waiting is how many requests wait, with this
// one. Call Next again after every call of another method, and when more requests wait.
func (l *Learner) Next(now Instant, waiting int) Plan {
	l.settle(now, keptFor)
	m := l.mind
	if m == nil {
		return Plan{At: now, p: 1}
	}
	old := Plan{At: never}
	if m.fresh { // nothing has happened since the last plan
		if old = m.plan; old.At <= now && old.Reason >= Believed {
			m.plan.At = now // a named instant does not move later
			return m.plan
		}
		if old.At > now && waiting <= m.climb.waiting*2 {
			return old
		}
		waiting = max(waiting, m.climb.waiting)
	}
	m.climb.seen.waited += max(0, min(now, m.plan.At)-max(m.planned, m.refused)) // requests have waited since the last plan was made
	m.planned = now
	m.plan = m.next(now, waiting, l)
	if m.plan.At == never && l.busy <= 0 { // no answer will come
		m.plan.At = now
	}
	if old.At > now && old.At < m.plan.At {
		m.plan = old
	}
	m.fresh = true
	m.climb.waiting = max(1, waiting)
	return m.plan
}

// next makes a new plan. Its arguments are those of Next.
func (m *mind) next(now Instant, waiting int, l *Learner) Plan {
	busy := int(l.busy)
	switch {
	case m.lifted:
		return Plan{At: now, p: 1}
	case m.pause > now:
		return Plan{At: m.pause, Reason: Asked, p: 1}
	case len(m.bank.of) == 0 || !m.refusing:
		return Plan{At: now, p: 1}
	}
	m.presume(now, l)
	if float64(busy) >= m.allow {
		if young, more := m.young(now, busy, cooldown.Quiet(m.trip)); float64(young) >= m.allow {
			return Plan{At: min(more, m.answers(now)), Reason: Untrusted, p: 1}
		}
	}
	switch {
	case m.bank.again:
		m.bank.rebuild()
	case m.bank.stale:
		m.bank.refit()
	}
	p := m.decide(now, waiting)
	if p.At <= now && busy > 0 && m.risky(p.p, m.risk) {
		if young, more := m.young(now, busy, soonHeard*m.trip); m.risky(p.p, m.risk*float64(young)/float64(busy)) {
			return Plan{At: min(more, m.answers(now)), Reason: Untrusted, p: 1}
		}
	}
	switch {
	case p.At > now && l.away == nil && m.widening.may(m): // in a fleet, other processes would count a try as an ordinary request
		return m.widening.wider(now, p, m)
	case p.At > now:
		return m.climb.upward(now, p, m, waiting)
	case waiting <= 1:
		if m.climb.idle = now; m.widening.searches(&m.bank) {
			m.widening.end(now, &m.bank) // too few requests wait to fill the limit
		}
	}
	return p
}

// mostEarned is up to which number acceptances earn that more may be under way: beyond that, riskEarned
// would let five more refusals be expected.
const mostEarned = 1 << 10

// earn lets n more be under way, as n were accepted.
func (m *mind) earn(n int) {
	if m.allow < mostEarned {
		m.allow = min(m.allow+float64(n), mostEarned)
	}
}

// risky reports whether too many refusals are to be expected if one more is sent that is accepted
// with probability p, where so many are expected of those under way.
func (m *mind) risky(p, expected float64) bool {
	return expected+1-p > mostRisk+riskEarned*m.allow
}

// answers is until when answers to the requests under way are awaited. It ends, as all of these may
// be long polls.
func (m *mind) answers(now Instant) Instant {
	usual := m.bank.mean
	if usual == 0 { // not known
		usual = Instant(time.Second / 2) // longer than most answers take
	}
	return max(now, m.bank.event+max(Instant(time.Second), farLonger*usual))
}

// decide plans when to send: when choose says, but no later than its reason is trusted.
func (m *mind) decide(now Instant, waiting int) Plan {
	at, most, p := m.choose(now, waiting)
	at = min(at, m.latest(now, most))
	if k := len(m.bank.epochs); m.taken < m.refused && m.bank.epochs[k-1].streak > 2 {
		at = max(at, m.refused+(m.refused-m.streak)/streakPart)
	}
	last := max(m.refused, m.sentAt)
	if m.doubted && m.taken < m.refused {
		at = min(at, max(now, last+max(doubtWait, (m.refused-m.streak)/doubtPart)))
	}
	if m.bank.paused == 0 && !m.bank.sure() {
		at = min(at, max(now, last.Add(cooldown.LongestGuess(m.refused.Sub(m.streak)))))
	}
	if m.most > 0 && at > last+m.most {
		at = max(now, last+m.most)
	}
	return Plan{At: at, Reason: Believed, p: min(1, p)}
}

// sure reports whether the leader, with those that agree with it, or all candidates with a ban
// together are trusted.
func (b *bank) sure() bool { return b.agreed(math.MaxUint16) >= sureWeight || b.banned() >= sureWeight }

// banned is the weight of all candidates with a ban.
func (b *bank) banned() (w float64) {
	for i := range b.of {
		if b.of[i].ban > 0 {
			w += b.of[i].weight
		}
	}
	return w
}

// latest is when a request is sent at the latest. most is when candidates of the majority of
// weight have room: the wait until then since the last event is made longer by lateBy.
func (m *mind) latest(now, most Instant) Instant {
	since := max(m.refused, m.sentAt)
	if late := since + Instant(lateBy*float64(most-since)); most > now && (m.late == 0 || late < m.late) {
		m.late = late
	}
	if m.late == 0 { // they have had room all the time since the last event
		return never
	}
	return max(now, m.late)
}
