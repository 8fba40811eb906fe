package learn

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A Reason is why something has to wait.
type Reason uint8

const (
	Free      Reason = iota // it need not wait
	Asked                   // the server asked for a pause
	Believed                // the likeliest limits have no room
	Found                   // likewise, but it goes earlier to find out whether more is accepted
	Untrusted               // few requests may be under way after a refusal, until answers come
)

// A Plan is when something may be sent.
type Plan struct {
	At     Instant // now, or later; never: after the next answer
	Reason Reason  // Asked: the server said so itself; otherwise At is a guess, which may change
	p      float64 // how likely it is accepted then
	wide   bool    // it is one more at a time than the leader bears, see widening
}

const (
	leastPrice = 2e8  // what a refusal costs at least, in time of those who wait
	mostPrice  = 6e10 // and at most, unless the server asked for more: most windows are over after a minute
	priceUnits = 3    // and in units of the rate; with 6, time p90 4.1 instead of 3.7 on train
	mostRisk   = 1.5  // refusals to be expected of what is under way; with .7 time p90 4.5 instead of 4.1 on train
	riskEarned = .005 // and in addition for each that was accepted since the last refusal; with .02, no difference on train
	lateBy     = 1.25 // times that until the candidates have room is the longest wait: if they are right it costs a quarter, if not it shows
	dearAt     = 50   // units flow off in the pause that a refusal costs, from where on
	margin     = 3    // times the doubt about arrivals stays free of a bucket: it is lost once, and saves refusals again and again
	unsure     = .5   // weighs the leader, and no wait was named: then none is longer than a guess may be
	doubtWait  = 1e9  // is the longest wait while the host may be down: a host that is back is used again after a second,
	doubtPart  = 4    // or a quarter of the time for which it was not
	mostOf     = .5   // of all weights: what is likelier than not
	forThose   = .25  // of a wait in vain is that of each who waits behind; with .12, time p99 36 instead of 30 on train
	mostQueue  = 50   // of those who wait count for whom to follow; 20 and 150 did the same on train
	farLonger  = 16   // times as long as usual an answer takes, of what counts no more
	streakPart = 4    // of the time since a streak of refusals began passes between two
)

// Next is when n units may be sent. waiting is how many requests wait, including this
// one. It is called again after every other call, and when more requests wait.
func (l *Learner) Next(now Instant, n, waiting int) Plan {
	l.settle(now, keptFor)
	m := l.mind
	if m == nil {
		return Plan{At: now, p: 1}
	}
	old := Plan{At: never}
	if m.fresh {
		if old = m.plan; old.At <= now && old.Reason >= Believed {
			m.plan.At = now // nothing has happened since it was named, so it holds
			return m.plan
		}
		if old.At > now && waiting <= m.climb.waiting*2 {
			return old
		}
		waiting = max(waiting, m.climb.waiting)
	}
	m.climb.seen.waited += max(0, min(now, m.plan.At)-max(m.planned, m.refused)) // somebody did since then, for what is believed or was asked
	m.planned = now
	m.plan = m.next(now, n, waiting, l)
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

func (m *mind) next(now Instant, n, waiting int, l *Learner) Plan {
	busy := int(l.busy)
	switch {
	case m.lifted:
		return Plan{At: now, p: 1}
	case m.pause > now:
		return Plan{At: m.pause, Reason: Asked, p: 1}
	case len(m.bank.of) == 0 || !m.refusing:
		return Plan{At: now, p: 1}
	}
	if float64(busy) >= m.allow {
		return Plan{At: m.answers(now), Reason: Untrusted, p: 1}
	}
	if m.bank.stale {
		m.bank.refit()
	}
	p := m.decide(now, n, waiting)
	if p.At <= now && busy > 0 && m.risk+1-p.p > mostRisk+riskEarned*min(m.allow, 1<<10) {
		return Plan{At: m.answers(now), Reason: Untrusted, p: 1}
	}
	switch {
	case p.At > now && l.away == nil && m.widening.may(m): // of a fleet, others would take a try for one of theirs
		return m.widening.wider(now, p, m)
	case p.At > now:
		return m.climb.upward(now, p, m, waiting)
	case waiting <= 1:
		if m.climb.idle = now; m.widening.searches(&m.bank) {
			m.widening.end(now, &m.bank) // there are not enough who wait
		}
	}
	return p
}

// answers is until when answers to requests under way are awaited: these may be long polls.
func (m *mind) answers(now Instant) Instant {
	usual := m.bank.mean
	if usual == 0 { // not known
		usual = Instant(time.Second / 2) // longer than most answers take
	}
	return max(now, m.bank.event+max(Instant(time.Second), farLonger*usual))
}

// A chance is a candidate's word on when there is room.
type chance struct {
	at     Instant
	weight float64
	price  float64 // of a refusal, if it is the server's, as price
}

// price is what a refusal costs those who wait, in nanoseconds: units of the believed
// rate, but no more than of the rate that was seen, or than the time for which nothing
// was accepted, so that the waits of those who know nothing yet grow step by step. It is
// never less than the server asked for.
func (m *mind) price(now Instant) float64 {
	c := &m.bank.of[0]
	units := priceUnits * 1e9 / max(1e-4, c.rate(c.size))
	seen := max(float64(now-m.taken), priceUnits*1e9/m.bank.flow)
	return max(leastPrice, float64(2*m.bank.mean), float64(m.bank.paused), min(units, seen, mostPrice))
}

// decide chooses the instant at which to send. If the server has a candidate that has room
// earlier, all requests have waited in vain since then; if it has one that has room later, a
// request is refused.
func (m *mind) decide(now Instant, n, waiting int) Plan {
	var buf [maxCandidates]chance
	k := 0
	total, dear := 0.0, 0.0 // dear: sum over those that have no room of their weights times prices
	price := m.price(now)
	for i := range m.bank.of[:m.bank.live] {
		c := &m.bank.of[i]
		buf[k] = chance{m.bank.ready(c, now, float64(n)), c.weight, max(price, float64(c.ban))}
		total += c.weight
		dear += c.weight * buf[k].price
		k++
	}
	ch := buf[:k]
	slices.SortFunc(ch, func(a, b chance) int { return cmp.Compare(a.at, b.at) })
	behind := 1 + forThose*float64(min(waiting, mostQueue))
	best, cost, p := 0, math.Inf(1), 0.0
	sure, vain := 0.0, 0.0 // vain: sum over those that have room of their weights times how long they have had it
	most := ch[k-1].at
	for i := range ch {
		if i > 0 {
			vain += sure * float64(ch[i].at-ch[i-1].at)
		}
		sure += ch[i].weight / total
		dear -= ch[i].weight * ch[i].price
		if sure >= mostOf {
			most = min(most, ch[i].at)
		}
		if x := behind*vain + max(0, dear)/total; x < cost-1 {
			best, cost, p = i, x, sure
		}
	}
	at := ch[best].at
	at = min(at, m.latest(now, most))
	if k := len(m.bank.epochs); m.taken < m.refused && m.bank.epochs[k-1].streak > 2 {
		at = max(at, m.refused+(m.refused-m.streak)/streakPart)
	}
	last := max(m.refused, m.sentAt)
	if m.doubted && m.taken < m.refused {
		at = min(at, max(now, last+max(doubtWait, (m.refused-m.streak)/doubtPart)))
	}
	if m.bank.paused == 0 && m.bank.of[0].weight < unsure {
		at = min(at, max(now, last.Add(cooldown.LongestGuess(m.refused.Sub(m.streak)))))
	}
	if m.most > 0 && at > last+m.most {
		at = max(now, last+m.most)
	}
	return Plan{At: at, Reason: Believed, p: min(1, p)}
}

// latest bounds the wait: it is at most lateBy times the wait until candidates of mostOf the
// weight have room.
func (m *mind) latest(now, most Instant) Instant {
	since := max(m.refused, m.sentAt)
	if late := since + Instant(lateBy*float64(most-since)); most > now && (m.late == 0 || late < m.late) {
		m.late = late
	}
	if m.late == 0 { // they have had room since the last event
		return never
	}
	return max(now, m.late)
}

// ready is when a request may be sent so that a candidate has room when it
// arrives.
func (b *bank) ready(c *candidate, now Instant, n float64) Instant {
	if c.family == atOnce {
		if b.work*float64(b.busy)+n <= max(c.size, n) {
			return now
		}
		return max(now, b.event+2*b.mean) // a request that takes longer than that need not be waited for
	}
	at, size := now+b.half, max(c.size, n)
	if c.family == bucket && size >= n+1 { // requests may arrive closer together than they were sent
		doubt := float64(b.slack) / float64(c.per)
		if b.paused > dearAt*c.per {
			doubt *= margin
		}
		size -= min(doubt, size-n)
	}
	if c.family == bucket && c.barred <= at && c.peek(&c.state, at, b.log, b.half)+n-size <= almost {
		return now
	}
	t := c.shape.ready(c.state, size, n, at, b.log, b.half)
	if t <= at {
		return now
	}
	t -= b.half
	if c.family != bucket || size < n+1 { // borders are as sharp as they are known
		t += b.slack
	}
	return max(now, t)
}
