package learn

import "math"

// A climb is the search upward. A belief at half of the true rate explains all
// that was seen and refuses nothing: what shows it is that requests wait while
// nothing is refused. So they pay: a request is sent before its time when what
// all who wait may win, or a share of the time for which there was a queue, is worth
// more than what a refusal costs, by the odds that the belief is too slow, which every
// failure halves. If it is accepted, the gap between two sends shrinks with each round
// trip in which all were, so that any belief is left behind within a few round trips,
// and without bursts.
type climb struct {
	fails   float64
	failed  Instant // when fails was true
	gap     Instant // between two sends while it lasts; zero: it has not begun
	first   Instant // gap when it began
	step    Instant // what is sent from then on shows whether gap is borne
	probe   Instant // when the first of them was sent; zero: none was
	won     int     // accepted of what was sent since then
	waiting int     // when the plan was made
	due     Instant // when the first would have been sent in its time
	paid    bool    // what it cost is still to be measured
	idle    Instant // when nobody had to wait last
	seen    look
}

const (
	climbWin   = .05   // share of the believed wait, or of the time with a queue, that is won, times the odds that it is; with .02 time p90 4.5 instead of 4.1 on train
	climbStep  = .8    // of the wait is the latest instant to find out
	climbFirst = 4     // prices after the last send is the first, and twice that after a failure
	failHalves = 600e9 // with 120 s, a few more refusals on train, no faster
	wins       = 2     // times what the leader bears show that it is too slow; chance and jitter pass a few more than it bears
	coarse     = .5    // of the gap, each round trip in which all were accepted, as long as no climb has failed
	fine       = .8    // likewise, afterwards
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
	base := max(m.sentAt, m.refused)
	if c.gap > 0 {
		if at := base + c.gap; at < p.At {
			p.At, p.Reason, p.p = max(now, at), Found, 1
		}
		return p
	}
	wait := float64(p.At - base)
	if wait <= 0 || c.probe != 0 {
		return p
	}
	lead := &m.bank.of[0]
	price := max(leastPrice, float64(2*m.bank.mean), float64(m.bank.paused), float64(c.seen.cost), lead.unit())
	c.forget(now)
	queued := float64(now - max(c.idle, m.refused)) // for so long somebody has waited, and nobody was refused
	all := float64(waiting) * wait                  // until all have gone
	odds := math.Exp2(-2*c.fails) * climbWin
	if max(odds*max(all, queued), m.bank.faster()*math.Exp2(-c.fails)*all) < price {
		return c.look(now, base, p, m)
	}
	return c.early(now, base+Instant(min(climbStep*wait, climbFirst*price*math.Exp2(c.fails))), base, p)
}

// early moves a plan forward to at.
func (c *climb) early(now, at, base Instant, p Plan) Plan {
	c.due = p.At
	if at < p.At {
		p.At, p.Reason, p.p = max(now, at), Found, 1
		c.first = at - base
	}
	return p
}

// faster is the part of the time of those who wait that other candidates expect to save,
// by how likely they are.
func (b *bank) faster() (part float64) {
	lead := b.of[0].rate(b.of[0].size)
	for i := range b.of {
		c := &b.of[i]
		if c.family == atOnce {
			continue
		}
		if r := c.rate(c.size); r > lead {
			part += c.weight * (1 - lead/r)
		}
	}
	return part
}

func (c *climb) sent(now Instant, p *Plan) {
	if p.Reason == Found && c.probe == 0 {
		c.probe, c.step, c.won, c.seen.at = now, now, 0, now
	}
}

func (c *climb) accepted(now, sent Instant) {
	if c.paid {
		c.paid = false
		c.seen.cost, c.seen.shut = max(0, min(sent-c.due, costMost)), min(sent-c.seen.at, costMost)
	}
	if c.probe != 0 && sent >= c.probe {
		c.won++
		if c.gap == 0 {
			c.gap = max(1, c.first)
		}
		if sent >= c.step {
			part := fine
			if c.fails < .5 {
				part = coarse
			}
			c.gap, c.step = max(1, Instant(part*float64(c.gap))), now
		}
	}
}

// fail notes that one looked for more in vain.
func (c *climb) fail(now Instant) {
	c.forget(now)
	c.fails++
}

// refused ends the climb. It was not in vain if far more was accepted than the leader
// bears, even if the leader explains the refusal that ended it: there is more to find.
func (c *climb) refused(now, sent Instant, b *bank) {
	if c.seen.since == 0 {
		c.seen.since = now
	}
	if c.probe != 0 && sent >= c.probe {
		if len(b.of) == 0 || float64(c.won) <= wins*b.of[0].bears(sent-c.probe) {
			c.fail(now)
		} else {
			c.seen.since = now
		}
		c.paid = c.won == 0 // after others, what is left of the limit is not what it was when due was said
	}
	c.seen.waited = 0
	c.gap, c.probe = 0, 0 // everything may be sent in its time
}

// bears is how much c lets through in so long a time.
func (c *candidate) bears(d Instant) float64 {
	return c.size + c.rate(c.size)*float64(d)/1e9
}
