package learn

import (
	"math"
	"time"
)

// A Limit is a limit in figures: Units per Per; of a bucket what flows off in a
// second, and Burst units at once.
type Limit struct {
	Units float64
	Per   time.Duration
	Burst float64 // zero: no bucket
}

// Leader is the likeliest limit, if there is one that may hold requests up now.
// It is not one on requests at a time.
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

// AtOnce is how many requests at a time the likeliest limit allows; zero: it is on
// something else, or there is none.
func (l *Learner) AtOnce() float64 {
	if !l.Believes() || l.mind.bank.of[0].family != atOnce {
		return 0
	}
	return l.mind.bank.of[0].size
}

// Words is the likeliest limit in words; "": there is none.
func (l *Learner) Words() string {
	if !l.Believes() {
		return ""
	}
	return l.mind.bank.of[0].String()
}

// Unsure reports whether no limit is likelier than not, and no wait was named.
func (l *Learner) Unsure() bool {
	m := l.mind
	return m != nil && m.bank.paused == 0 && len(m.bank.of) > 0 && m.bank.of[0].weight < unsure
}

// Explains reports whether a limit explains several refusals, with hardly anything against
// it: then they are neither chance nor an overload's.
func (l *Learner) Explains() bool {
	m := l.mind
	if m == nil || len(m.bank.of) == 0 || len(m.bank.epochs) < explained {
		return false
	}
	if m.bank.stale {
		m.bank.refit()
	}
	return m.bank.of[0].against < contradicted || m.crowded()
}

const (
	explained    = 3 // an overload of two seconds makes two, and any limit explains these
	contradicted = 1 // less than one acceptance or refusal that is not old
)

// Under says how many are under way.
func (l *Learner) Under(n int) { l.busy = int32(n) }

// UnderWay is how many are.
func (l *Learner) UnderWay() int { return int(max(0, l.busy)) }

// Believes reports whether there is a limit that may hold requests up.
func (l *Learner) Believes() bool {
	return l.mind != nil && l.mind.refusing && len(l.mind.bank.of) > 0
}

// Since is the last time that something was sent, or refused; zero: no limit is known.
func (l *Learner) Since() Instant {
	if l.mind == nil {
		return 0
	}
	return max(l.mind.sentAt, l.mind.refused)
}

// borneOut is how much likelier a limit is that was found before: as if two refusals
// spoke for it.
const borneOut = 2

// Recall lets l begin with a limit that was found before. Units per window or flow: both
// are tried.
func (l *Learner) Recall(now Instant, x Limit) {
	if !(x.Units > 0) || x.Per <= 0 || l.Believes() {
		return
	}
	m := l.think()
	rate := x.Units / x.Per.Seconds()
	flow := candidate{shape: shape{family: bucket, per: Instant(1e9 / rate)}, size: max(1, x.Burst), prior: -borneOut}
	if flow.per <= 0 {
		return
	}
	m.bank.of = nil
	if x.Burst == 0 && x.Units >= 1 {
		m.bank.of = append(m.bank.of, candidate{shape: shape{family: slidingLog, per: Instant(x.Per)}, size: x.Units, prior: -borneOut})
		flow.prior += .3 // the other sends no more in a window
	}
	m.bank.of = append(m.bank.of, flow)
	if x.Burst >= 1 { // perhaps it is spent: that is soon over
		n := uint16(min(x.Burst, maxUnits))
		m.bank.log = append(m.bank.log, rec{at: now, last: now, taken: n})
	}
	m.allow, m.refusing = 1, true
	m.bank.patience, m.bank.stale = firstPatience, true
	m.taken, m.bank.event, m.climb.idle = now, now, now
}

// Forget makes l as good as new, but for what is under way.
func (l *Learner) Forget() {
	*l = Learner{trips: l.trips, busy: l.busy, away: l.away}
}

// Reopened makes l as good as new after a row of refusals that no limit explains, but
// for what it says of bans.
func (l *Learner) Reopened() {
	if l.mind == nil {
		return
	}
	b := &l.mind.bank
	b.rows()
	shut := b.shut
	l.Forget()
	l.think().bank.shut = shut
}

// Shuts reports whether who was refused seems to be shut out for a while.
func (l *Learner) Shuts() bool {
	return l.mind != nil && (l.mind.bank.shut[0].hi > 0 || l.mind.bank.shut[1].hi > 0)
}

// Lift ends the wait that the server asked for, and lets one request go whatever is
// believed.
func (l *Learner) Lift() {
	if m := l.mind; m != nil {
		m.pause, m.told, m.fresh, m.lifted = 0, 0, false, true
	}
}

// Outlook is about when one more may be sent after ahead others. Nothing changes.
func (l *Learner) Outlook(now Instant, ahead int64) Instant {
	if !l.Believes() {
		return now
	}
	b := &l.mind.bank
	c := &b.of[0]
	at := b.ready(c, now, 1)
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
	c.add(&st, now+b.half, free) // by those who go now
	at = c.shape.ready(st, c.size, 1, now+b.half, b.log, b.half) - b.half
	return at + span64(math.Floor((float64(ahead)-free)/max(1, c.size))*float64(c.per))
}

func span64(x float64) Instant { return Instant(min(x, 1e17)) }
