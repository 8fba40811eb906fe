package learn

import (
	"cmp"
	"math"
	"slices"
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

// Costs and prices are times, in nanoseconds, that requests wait in vain. What a figure for time
// means is said in the package comment.
const (
	// leastPrice is the least cost of a refusal: one is worth avoiding even where round trips and
	// units take next to no time.
	leastPrice = 2e8
	// mostPrice is the most, unless the server asked for a longer pause: most windows are over
	// after a minute.
	mostPrice = 6e10
	// priceUnits is the cost of a refusal in units of the believed rate. With 6, time p90 was 4.1
	// instead of 3.7 on train.
	priceUnits = 3
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
	// margin is how many times the doubt about arrivals is left free in a bucket if refusals are
	// dear: if more than dearUnits units flow off in the pause after one. What is left free is lost
	// once, and it avoids refusals again and again.
	margin    = 3
	dearUnits = 50
	// sureWeight is the least weight of a leader that is trusted. While it has less, and the server
	// named no wait, no wait is longer than a guessed pause may be, see cooldown.LongestGuess.
	sureWeight = .5
	// doubtWait is the longest wait while the host may be down, so that it is used again a second
	// after it is back. If a quarter (doubtPart) of the time for which it has refused is longer,
	// that is the longest wait.
	doubtWait = 1e9
	doubtPart = 4
	// majority is the part of all weights that makes something likelier than not.
	majority = .5
	// behindPart is the part of a wait in vain that each other waiting request loses, too. With
	// .12, time p99 was 36 instead of 30 on train.
	behindPart = .25
	// mostQueue is how many waiting requests count for that. 20 and 150 did the same on train.
	mostQueue = 50
	// farLonger is for how many times the usual time answers are awaited. A request that takes
	// longer is taken for a long poll.
	farLonger = 16
	// streakPart says that between two requests of a long streak of refusals a quarter of the time
	// since it began passes. Then nothing but a ban or an outage explains the streak, and its end
	// is noticed late by a quarter of its length at most.
	streakPart = 4
	// mostAtOnce is the weight of all limits on requests at a time from which on each answer is
	// awaited. With .1, .2 and .4, 6 %, 5 % and 6 % of the calls to slow servers were lost (5 to
	// 20 a second, answers after 2 or 10 s), and 20 % if each answer is always awaited. With
	// .6, two instead of one were refused by a limit on requests at a time.
	mostAtOnce = .2
)

// Next says when a request of n units may be sent. waiting is how many requests wait, with this
// one. Call Next again after every call of another method, and when more requests wait.
func (l *Learner) Next(now Instant, n, waiting int) Plan {
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

// next makes a new plan. Its arguments are those of Next.
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
		if n, more := m.quiet(now, busy); float64(busy-n) >= m.allow+float64(n) {
			return Plan{At: min(more, m.answers(now)), Reason: Untrusted, p: 1}
		}
	}
	if m.bank.stale {
		m.bank.refit()
	}
	p := m.decide(now, n, waiting)
	if p.At <= now && busy > 0 && m.risky(p.p, m.risk, 0) {
		if n, more := m.quiet(now, busy); m.risky(p.p, m.risk*float64(busy-n)/float64(busy), n) {
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

// risky reports whether too many refusals are to be expected if one more is sent that is accepted
// with probability p, where so many are expected of those under way, of which quiet were not
// refused.
func (m *mind) risky(p, expected float64, quiet int) bool {
	return expected+1-p > mostRisk+riskEarned*min(m.allow+float64(quiet), 1<<10)
}

// quiet is how many of busy requests under way were not refused, as a refusal would have come by
// now, and when there may be more of them. They earn the same trust as those that were answered,
// which counts where the server works for long on what it accepts. If those under way are what is
// limited, each answer is awaited.
func (m *mind) quiet(now Instant, busy int) (n int, more Instant) {
	if m.trip == 0 || m.bank.atOnce() > mostAtOnce {
		return 0, never
	}
	since, young := now-Instant(cooldown.Quiet(m.trip)), 0
	more = never
	for i := range m.bank.log {
		l := &m.bank.log[i]
		switch {
		case l.under == 0 || l.last <= since:
			n += int(l.under)
		default:
			more = min(more, now+l.last-since)
			young += int(l.under)
		}
	}
	return max(0, min(n, busy-young)), more // the log may not know of all answers
}

// atOnce is the weight of all candidates that limit requests at a time.
func (b *bank) atOnce() (w float64) {
	for i := range b.of {
		if b.of[i].family == atOnce {
			w += b.of[i].weight
		}
	}
	return w
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

// A chance is when a request could be sent if the server had a certain candidate.
type chance struct {
	at     Instant // when the candidate has room
	weight float64 // of the candidate
	price  float64 // the cost of a refusal if the server has it: a ban may make it dearer
	rate   float64 // units a second that it accepts in the long run
}

// price is what a refusal costs those who wait, in nanoseconds: the time of priceUnits units at the
// rate of the leader. It is at most the time of as many at the rate that was seen, or the time
// for which nothing was accepted, whichever is longer. So the waits of a Learner that knows
// nothing yet grow step by step. It is never less than two round trips, or than the pause that the
// server asked for.
func (m *mind) price(now Instant) float64 {
	c := &m.bank.of[0]
	units := priceUnits * 1e9 / max(1e-4, c.rate(c.size))
	seen := max(float64(now-m.taken), priceUnits*1e9/m.bank.flow)
	return max(leastPrice, float64(2*m.bank.mean), float64(m.bank.paused), min(units, seen, mostPrice))
}

// choose chooses when to send: the instant at which one of the candidates has room that costs
// least. If the server has a candidate that has room earlier, all who wait have lost the time
// since then; if it has one that has room later, a request is refused. p is the weight of those that
// have room at at, and those of the majority have it at most.
func (m *mind) choose(now Instant, n, waiting int) (at, most Instant, p float64) {
	if m.bank.live == 1 {
		at = m.bank.ready(&m.bank.of[0], now, float64(n))
		return at, at, 1
	}
	var buf [maxCandidates]chance
	k := 0
	total, dear := 0.0, 0.0 // dear: the sum of weight times price of the candidates that have no room yet
	price := m.price(now)
	for i := range m.bank.of[:m.bank.live] {
		c := &m.bank.of[i]
		buf[k] = chance{m.bank.ready(c, now, float64(n)), c.weight, max(price, float64(c.ban)), c.rate(c.size)}
		total += c.weight
		dear += c.weight * buf[k].price
		k++
	}
	ch := buf[:k]
	slices.SortFunc(ch, func(a, b chance) int { return cmp.Compare(a.at, b.at) })
	lead, waited := &m.bank.of[0], 0.0
	if lead.ban > 0 { // else a refusal costs little, and climbs find out
		waited = lead.weight * float64(m.climb.seen.waited)
	}
	behind := 1 + behindPart*float64(min(waiting, mostQueue))
	best, cost := 0, math.Inf(1)
	sure, vain := 0.0, 0.0 // sure: the weights of those that have room; vain: the sum of weight times how long they have had it
	most = ch[k-1].at
	for i := range ch {
		if i > 0 {
			vain += sure * float64(ch[i].at-ch[i-1].at)
		}
		sure += ch[i].weight / total
		dear -= ch[i].weight * ch[i].price
		if sure >= majority {
			most = min(most, ch[i].at)
		}
		// Whoever goes by less than the leader bears loses that part of the time until the next
		// refusal, which probably takes as long as it has.
		again := waited * max(0, 1-ch[i].rate/lead.rate(lead.size))
		if x := max(behind*vain, again) + max(0, dear)/total; x < cost-1 { // by a nanosecond, so that rounding does not decide
			best, cost, p = i, x, sure
		}
	}
	return ch[best].at, most, p
}

// decide plans when to send: when choose says, but no later than its reason is trusted.
func (m *mind) decide(now Instant, n, waiting int) Plan {
	at, most, p := m.choose(now, n, waiting)
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

// sure reports whether the leader, or all candidates with a ban together, are trusted.
func (b *bank) sure() bool { return b.of[0].weight >= sureWeight || b.banned() >= sureWeight }

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

// ready is when n units may be sent so that a candidate has room when they arrive.
func (b *bank) ready(c *candidate, now Instant, n float64) Instant {
	if c.family == atOnce {
		if b.mostAtWork(now, float64(b.paused)/c.unit())+n <= max(c.size, n) {
			return now
		}
		return max(now, b.event+2*b.mean) // one that takes longer than that is not waited for
	}
	at, size := now+b.half, max(c.size, n)
	if c.family != bucket || size < n+1 { // before the border there is no room at all: it arrives later than that by the doubt about arrivals
		return max(now, c.shape.ready(c.state, size, n, at-b.slack, b.log, b.half)+b.slack-b.half)
	}
	// Some of a bucket stays free, as requests may arrive closer together than they were sent.
	doubt := float64(b.slack) / float64(c.per)
	if b.paused > dearUnits*c.per {
		doubt *= margin
	}
	size -= min(doubt, size-n)
	if c.barred <= at && c.peek(&c.state, at, b.log, b.half)+n-size <= almost {
		return now
	}
	return max(now, c.shape.ready(c.state, size, n, at, b.log, b.half)-b.half)
}
