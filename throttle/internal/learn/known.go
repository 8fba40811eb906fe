package learn

import (
	"math"
	"time"
)

// A Limit is a limit in numbers. If it is a bucket, Per is a second and Units its rate.
type Limit struct {
	Units float64       // that are accepted per Per
	Per   time.Duration // the length of the window
	Burst float64       // the size of the bucket, in units; zero: it is no bucket
}

// Leader is the likeliest limit; false: there is none that may make requests wait now, or it
// is one on requests at a time.
func (l *Learner) Leader() (x Limit, ok bool) {
	c := l.leader()
	if c == nil {
		return Limit{}, false
	}
	if c.family == bucket {
		return Limit{c.rate(c.size), time.Second, c.size}, true
	}
	return Limit{Units: c.size, Per: time.Duration(c.per)}, true
}

func (l *Learner) leader() *candidate {
	if l.mind == nil || !l.mind.refusing || len(l.mind.bank.of) == 0 || l.mind.bank.of[0].family == atOnce {
		return nil
	}
	return &l.mind.bank.of[0]
}

// AtOnce is how many requests at a time the likeliest limit allows; zero: it is of another
// kind, or there is none.
func (l *Learner) AtOnce() float64 {
	if !l.Believes() || l.mind.bank.of[0].family != atOnce {
		return 0
	}
	return l.mind.bank.of[0].size
}

// Words is the likeliest limit in words, of any kind; "": there is none.
func (l *Learner) Words() string {
	if !l.Believes() {
		return ""
	}
	return l.mind.bank.of[0].String()
}

// Unsure reports whether neither limits that agree nor bans have half of the weight, and the
// server has named no wait. Bans do not count if a single row of refusals suggests them: it may
// as well be an outage.
func (l *Learner) Unsure() bool {
	m := l.mind
	if m == nil || m.bank.paused != 0 || len(m.bank.of) == 0 {
		return false
	}
	if max(m.bank.shut[0].rows, m.bank.shut[1].rows) == 1 && m.bank.banned() > 0 {
		return m.bank.of[0].ban > 0 || m.bank.of[0].weight < sureWeight
	}
	return !m.bank.sure()
}

// Explains reports whether a limit explains several refusals, with hardly any evidence against
// it: then they are neither chance nor an overload.
func (l *Learner) Explains() bool {
	m := l.mind
	if m == nil || len(m.bank.of) == 0 {
		return false
	}
	if m.bank.recent() < explained {
		return false
	}
	if m.bank.stale {
		m.bank.refit()
	}
	return m.explains(&m.bank.of[0]) || m.crowded()
}

// explains reports whether hardly any evidence is against c.
func (m *mind) explains(c *candidate) bool {
	return c.against < max(1, contradicted*float64(m.bank.recent()))
}

const (
	// explained is how many epochs a limit has to explain: an overload of two seconds makes
	// two, and any limit explains these.
	explained = 3
	// contradicted is how much evidence against it is too much, for each epoch: as much as if it
	// did not explain one in eight. A whole one, nearly, may always be unexplained.
	contradicted = againstRefused / 8
)

// Under says how many requests are under way, if Sent was not called for them.
func (l *Learner) Under(n int) { l.busy = int32(n) }

// UnderWay is how many requests are under way.
func (l *Learner) UnderWay() int { return int(max(0, l.busy)) }

// Believes reports whether there is a limit that may make requests wait.
func (l *Learner) Believes() bool {
	return l.mind != nil && l.mind.refusing && len(l.mind.bank.of) > 0
}

// Since is when a request was last sent or refused; zero: none was ever refused.
func (l *Learner) Since() Instant {
	if l.mind == nil {
		return 0
	}
	return max(l.mind.sentAt, l.mind.refused)
}

// borneOut is how much likelier a limit is that was found before, as a logarithm: as if two
// refusals were evidence for it.
const borneOut = 2

// Recall lets l begin with a limit that was found in an earlier run of the program. It does
// nothing if l believes in one already. If x is no bucket, a window and a bucket are tried.
func (l *Learner) Recall(now Instant, x Limit) {
	if !(x.Units > 0) || x.Per <= 0 || l.Believes() {
		return
	}
	m := l.think(now)
	rate := x.Units / x.Per.Seconds()
	flow := candidate{shape: shape{family: bucket, per: Instant(1e9 / rate)}, size: max(1, x.Burst), prior: -borneOut}
	if flow.per <= 0 {
		return
	}
	m.bank.of = nil
	if x.Burst == 0 && x.Units >= 1 {
		m.bank.of = append(m.bank.of, candidate{shape: shape{family: slidingLog, per: Instant(x.Per)}, size: x.Units, prior: -borneOut})
		flow.prior += .3 // the window is preferred, because it never sends more than Units in Per
	}
	m.bank.of = append(m.bank.of, flow)
	if x.Burst >= 1 { // the bucket may be empty now
		n := uint16(min(x.Burst, maxUnits))
		m.bank.log = append(m.bank.log, entry{at: now, last: now, taken: n})
	}
	m.bank.stale = true
	m.begin(now)
}

// begin lets m obey limits of which nothing was seen yet.
func (m *mind) begin(now Instant) {
	m.allow, m.refusing, m.bank.patience = 1, true, firstPatience
	m.taken, m.bank.event, m.climb.idle = now, now, now
}

// Forget makes l forget all limits. What is under way, and how long answers take, stays.
func (l *Learner) Forget() {
	*l = Learner{trips: l.trips, busy: l.busy, away: l.away}
}

// Reopened is Forget after a row of refusals that no limit explains. It was ended by the
// acceptance of what was sent at sent. What came before stays evidence of bans.
func (l *Learner) Reopened(now, sent Instant) {
	if l.mind == nil {
		return
	}
	r := l.mind.bank.record
	r.reopened(sent)
	shut, kin := l.mind.bank.shut, l.mind.bank.kin
	l.Forget()
	m := l.think(now)
	m.bank.record, m.bank.shut, m.bank.kin, m.bank.stale = r, shut, kin, true
	m.taken, m.bank.event, m.bank.patience = now, now, firstPatience
}

// Shuts reports whether the server seems to refuse everything for a while after a refusal.
func (l *Learner) Shuts() bool {
	return l.mind != nil && (l.mind.bank.shut[0].hi > 0 || l.mind.bank.shut[1].hi > 0)
}

// Lift ends the wait that the server asked for, and lets one request go whatever limit is
// believed in.
func (l *Learner) Lift() {
	if m := l.mind; m != nil {
		m.pause, m.told, m.fresh, m.lifted = 0, 0, false, true
	}
}

// Outlook is about when one more unit may be sent after ahead others. It changes nothing.
func (l *Learner) Outlook(now Instant, ahead int64) Instant {
	if !l.Believes() {
		return now
	}
	b := &l.mind.bank
	c := &b.of[0]
	at := b.ready(c, now)
	if c.family == atOnce || ahead <= 0 {
		return at
	}
	if c.family == bucket {
		return at + span64(float64(ahead)*float64(c.per))
	}
	if at > now {
		return at + span64(math.Floor(float64(ahead)/max(1, c.size))*float64(c.per))
	}
	st := c.state
	c.pass(&st, now+b.half, b.log, b.half)
	free := c.size - c.inUse(&st, max(now+b.half, st.start))
	if float64(ahead) < free {
		return now
	}
	c.add(&st, now+b.half, free) // so many of those ahead go now
	at = c.shape.ready(st, c.size, now+b.half, b.log, b.half) - b.half
	return at + span64(math.Floor((float64(ahead)-free)/max(1, c.size))*float64(c.per))
}

func span64(x float64) Instant { return Instant(min(x, 1e17)) }
