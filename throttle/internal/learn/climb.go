package learn

import "math"

// A climb is the search upward. A belief at half of the true rate explains all
// that was seen and refuses nothing: what shows it is that requests wait while
// nothing is refused. So they pay: a request is sent before its time when what
// all who wait may win is worth more than what a refusal costs them, by the
// odds that the belief is too slow, which every failure halves. Each that is
// accepted before its time lends two more, so that any belief is left behind
// within a few round trips.
type climb struct {
	fails   float64
	failed  Instant // when fails was true
	credit  float64 // requests that may be sent before their time now
	probe   Instant // when the first of them was sent; zero: none was
	waiting int     // when the plan was made
	due     Instant // when the last one would have been sent in its time
	cost    Instant // by how much later than that the next was accepted after one was refused
	paid    bool    // cost is still to be measured
}

const (
	climbWin   = .05   // share of the believed wait that is won, times the odds that it is; with .02 time p90 4.5 instead of 4.1 on train
	climbStep  = .8    // of the wait is the latest instant to find out
	climbFirst = 4     // prices after the last send is the first, and twice that after a failure
	failHalves = 600e9 // with 120 s, a few more refusals on train, no faster
	lends      = 2
	mostCredit = 64
)

func (c *climb) forget(now Instant) {
	c.fails *= math.Exp2(-float64(now-c.failed) / failHalves)
	c.failed = now
}

// upward moves a plan forward if that is worth it.
func (c *climb) upward(now Instant, p Plan, m *mind, waiting int) Plan {
	if m.taken < m.refused || m.sentAt == 0 || p.At == never {
		return p
	}
	if c.credit >= 1 {
		p.At, p.Reason, p.p = now, Found, 1
		return p
	}
	base := max(m.sentAt, m.refused)
	wait := float64(p.At - base)
	price := max(leastPrice, float64(2*m.bank.mean), float64(m.paused), float64(c.cost))
	c.forget(now)
	if wait <= 0 || c.probe != 0 || climbWin*math.Exp2(-2*c.fails)*float64(waiting)*wait < price {
		return p
	}
	c.due = p.At
	if at := base + Instant(min(climbStep*wait, climbFirst*price*math.Exp2(c.fails))); at < p.At {
		p.At, p.Reason, p.p = max(now, at), Found, 1
	}
	return p
}

func (c *climb) sent(now Instant, p *Plan) {
	if p.Reason != Found {
		return
	}
	c.credit = max(0, c.credit-1)
	if c.probe == 0 {
		c.probe = now
	}
}

func (c *climb) accepted(sent Instant) {
	if c.paid {
		c.paid, c.cost = false, max(c.cost/2, sent-c.due)
	}
	if c.probe != 0 && sent >= c.probe {
		c.credit = min(mostCredit, c.credit+lends)
	}
}

// idle ends a climb: everything may be sent in its time.
func (c *climb) idle() { c.credit, c.probe = 0, 0 }

func (c *climb) refused(now, sent Instant) {
	if c.probe != 0 && sent >= c.probe {
		c.forget(now)
		c.fails++
		c.paid = true
	}
	c.idle()
}
