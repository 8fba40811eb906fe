package learn

import (
	"math"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A climb is a search for a higher limit. If a limit is believed to be half of what it is, that
// explains all that was seen, and nothing is refused. The only sign of it is that requests
// wait. So a request is sent before the leader has room for it, if the time that all who wait
// may win, or a part of the time for which there was a queue, is worth more than what a refusal
// costs. That is weighed by the odds that the believed limit is too low, which every failure
// halves. If the request is accepted, the gap between two sends shrinks with each round trip in
// which all were accepted. So any wrong limit is left behind within a few round trips, without
// bursts.
type climb struct {
	fails   float64 // climbs that failed, less with time
	failed  Instant // the time of fails
	risen   uint16  // the rise after which they are counted, see bank
	gap     Instant // between two sends during a climb; zero: there is none
	first   Instant // the first gap of the climb
	step    Instant // requests that are sent from then on show whether gap is too short
	tried   int     // how many were
	probe   Instant // when the first request of the climb was sent; zero: none was
	won     int     // requests accepted that were sent since then
	waiting int     // how many requests waited when the plan was made
	due     Instant // when the first request would have been sent without the climb
	paid    bool    // its cost, see look.cost, is still to be measured
	idle    Instant // when it last happened that no request had to wait
	seen    look
}

const (
	// climbWin is which part of the believed wait, or of the time with a queue, a climb wins,
	// times the odds that it does. With .02, times were 4.5 instead of 4.1 (p90, train).
	climbWin = .05
	// climbStep and climbFirst say when the first request of a climb is sent, counted from the last
	// request: after climbStep of the wait at the latest, or earlier, after climbFirst prices of a
	// refusal. Each failed climb doubles the latter time, and brings the former nearer to the end of
	// the wait: a window may be shorter than is believed by less than climbStep shows.
	climbStep  = .8
	climbFirst = 4
	// failHalves is after which time, in nanoseconds, a failure counts half. With 120 s there
	// were a few more refusals on train, and it was no faster.
	failHalves = 600e9
	// wins is how many times what the leader accepts a climb has to get through to show that
	// the leader is too slow: by chance and jitter a few more pass than it accepts.
	wins = 2
	// coarse is by what the gap is multiplied after each round trip in which all requests
	// were accepted, and fine the same after a climb has failed.
	coarse = .5
	fine   = .8
)

// forget lets failures count less with time.
func (c *climb) forget(now Instant) {
	c.fails *= math.Exp2(-float64(now-c.failed) / failHalves)
	c.failed = now
}

// upward moves a plan earlier: during a climb by its gap, and otherwise if a climb is worth its
// cost.
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
	price := max(leastPrice, m.delay(), float64(m.bank.paused), float64(c.seen.cost), lead.unit(), float64(lead.ban))
	if c.forget(now); c.risen != m.bank.risen { // climbs failed at a limit that is no more
		c.risen, c.fails = m.bank.risen, 0
	}
	queued := float64(now - max(c.idle, m.refused)) // for so long there was a queue, and nothing was refused
	all := float64(waiting) * wait                  // until all have gone
	odds := math.Exp2(-2*c.fails) * climbWin
	rate, most := lead.rate(lead.size), all
	// If a refusal is dear, requests wait for limits that are hardly likely, though the leader has
	// room. What comes so slowly never refutes these. With cheap refusals it is the other way about: a
	// climb would get in the way of widening.
	if price > float64(cooldown.MostGuess) && m.bank.ready(lead, now) <= now {
		rate, most = min(rate, 1e9/wait), max(all, queued)
	}
	if max(odds*max(all, queued), m.bank.faster(rate)*math.Exp2(-c.fails)*most) < price {
		return c.look(now, base, p, m)
	}
	latest := 1 - (1-climbStep)/(1+c.fails)
	return c.early(now, base+Instant(min(latest*wait, climbFirst*price*math.Exp2(c.fails))), base, p, lead)
}

// early moves a plan to at, if that is earlier. The climb that begins so is no faster at first than its
// leader by more than climbStep says: the wait for a unit that is about to leave a window may be as short
// as can be.
func (c *climb) early(now, at, base Instant, p Plan, lead *candidate) Plan {
	c.due = p.At
	if at < p.At {
		p.At, p.Reason, p.p = max(now, at), Found, 1
		c.first = max(at-base, Instant(climbStep*lead.unit()))
	}
	return p
}

// faster is which part of their wait requests are expected to save if the limit is that of a
// candidate that is faster than so many units a second, by the weights of these.
func (b *bank) faster(than float64) (part float64) {
	for i := range b.of {
		c := &b.of[i]
		if c.family == atOnce {
			continue
		}
		if r := c.rate(c.size); r > than {
			part += c.weight * (1 - than/r)
		}
	}
	return part
}

// sent notes that a request is sent by plan p. It may be the first of a climb.
func (c *climb) sent(now Instant, p *Plan) {
	if p.Reason == Found && !p.wide && c.probe == 0 {
		c.probe, c.step, c.tried, c.won, c.seen.at = now, now, 0, 0, now
	}
	c.tried++
}

// accepted notes that a request was accepted which was sent at sent.
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
			// If something else holds requests back, they do not show that they may go at the gap.
			gap := max(c.gap, (now-c.step)/Instant(max(1, c.tried)))
			c.gap, c.step, c.tried = max(1, min(c.gap, Instant(part*float64(gap)))), now, 0
		}
	}
}

// fail notes a climb that failed.
func (c *climb) fail(now Instant) {
	c.forget(now)
	c.fails++
}

// refused ends the climb. It has not failed if far more was accepted than the leader accepts,
// even if the leader explains the refusal that ended it.
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
		c.paid = c.won == 0 // if others were accepted, less is left of the limit than when due was computed
	}
	c.seen.waited = 0
	c.gap, c.probe = 0, 0
}

// bears is how many units c accepts within d at most.
func (c *candidate) bears(d Instant) float64 {
	return c.size + c.rate(c.size)*float64(d)/1e9
}
