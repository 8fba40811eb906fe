package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sony/gobreaker/v2"
)

// core is gobreaker's two-step breaker, used for what it counts: calls in a
// rolling window while closed, good probes while half-open. It is asked and
// told in one step when an attempt has ended, never at its start, so an
// attempt that outlasts the window is counted, one that never ends holds
// nothing, and nothing is reported twice. Its open time is 1 ns: notBefore is
// the only clock of the open state.
type core = gobreaker.TwoStepCircuitBreaker[struct{}]

var errBad = errors.New("bad")

// count is report for a closed circuit.
func (c *circuit) count(p pass, v verdict, now time.Time, ctx context.Context) {
	if v.answered || v.outcome == Success {
		c.unanswered = 0
	}
	if v.outcome == Ignore {
		return
	}
	if v.outcome == Success {
		c.failed = 0
		if c.row.succeeded(p.number, v.sent, now) {
			c.chance.succeeded()
		} else {
			c.chance.late()
		}
		if !v.slow && (c.calls == nil || now.Sub(c.lastBad) > c.cfg.Window) {
			c.rest()
			c.chance = chance{}
			c.calm.Store(now.Sub(c.pressed) > c.cfg.Window) // answers are timed as long as callers are in a hurry
			return
		}
	} else {
		c.failed++
		c.chance.failed()
		c.noted(v, now)
		how := spoken
		switch {
		case v.answered:
		case c.interrupted(v, now):
			how = beside
		default:
			how = unspoken
			if c.unanswered++; c.unanswered == 1 {
				c.run = now
			}
		}
		if v.usual = max(v.usual, c.slowest); c.row.failed(p.number, how, v, now) {
			c.chance.expect()
		}
	}
	if v.outcome == Failure || v.slow {
		c.lastBad = now
		c.calm.Store(false)
	}
	if c.calls == nil {
		c.start()
	}
	c.feed(v, now)
	if c.calls.State() != gobreaker.StateClosed {
		c.open(v, now, ctx)
	}
}

// rest forgets the counts of a window with nothing bad in it.
func (c *circuit) rest() {
	c.calls, c.slow = nil, nil
	c.row.reset(0, time.Time{})
	c.calm.Store(true)
}

// feed tells the cores of one call, and makes the one that counts trip if
// another rule says so.
func (c *circuit) feed(v verdict, now time.Time) {
	n := c.cfg.Consecutive
	if n > 0 && v.outcome == Failure {
		run := c.inARow(now)
		switch {
		case c.hopeless(run.unanswered, n):
			c.tripping, c.reason = true, number(run.unanswered, "failure")+" in a row without an answer"
		case c.hopeless(run.all, 4*n):
			c.tripping, c.reason = true, number(run.all, "failure")+" in a row"
		}
	}
	c.chance.timed(v.silent && !v.hasty)
	if !c.cfg.classic && c.chance.timeouts >= 0.5 && !c.tripping {
		c.tripping, c.reason = true, "half of the calls timed out"
	}
	tell(c.calls, v.outcome == Failure)
	if c.slow == nil || c.calls.State() != gobreaker.StateClosed {
		return
	}
	tell(c.slow, v.slow)
	if c.slow.State() != gobreaker.StateClosed {
		c.tripping = true
		tell(c.calls, true)
	}
}

// inARow is the failures that are a run both as they ended and as they began.
func (c *circuit) inARow(now time.Time) run {
	ended := run{c.failed, c.unanswered}
	if c.cfg.classic || !c.hopeless(ended.unanswered, c.cfg.Consecutive) && !c.hopeless(ended.all, 4*c.cfg.Consecutive) {
		return ended
	}
	began := c.row.longest(now)
	return run{min(ended.all, began.all), min(ended.unanswered, began.unanswered)}
}

// hopeless reports whether a run of n failures opens the circuit, if least in a
// row are too many for a host that was well. With a FailureRate of the user's
// least decides.
func (c *circuit) hopeless(n, least int) bool {
	if c.cfg.classic {
		return n >= least
	}
	return c.chance.hopeless(n, least)
}

// number is n things in words.
func number(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// tell is Allow and done in one step.
func tell(b *core, bad bool) {
	done, err := b.Allow()
	switch {
	case err != nil:
	case bad:
		done(errBad)
	default:
		done(nil)
	}
}

// start makes the cores.
func (c *circuit) start() {
	c.tripping = false
	c.calls = c.core("failure", c.cfg.FailureRate)
	if c.cfg.SlowCall > 0 {
		c.slow = c.core("slow call", c.cfg.SlowRate)
	}
}

func (c *circuit) core(what string, rate float64) *core {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  uint32(c.cfg.Probes),
		Interval:     c.cfg.Window,
		BucketPeriod: c.cfg.Window / 10,
		Timeout:      1,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			if c.tripping {
				return true
			}
			if rate == 0 {
				return false // FailureRate: see chance
			}
			judged := n.TotalSuccesses + n.TotalFailures
			if int64(judged) < int64(c.cfg.MinCalls) || float64(n.TotalFailures) < rate*float64(judged) {
				return false
			}
			c.reason = number(int(n.TotalFailures), what) + " in " + number(int(judged), "call")
			return true
		},
	})
}

// countProbe is report for a half-open circuit. Attempts of the closed state
// are of an older epoch and do not come here.
func (c *circuit) countProbe(v verdict, now time.Time, ctx context.Context) {
	switch {
	case v.outcome == Failure:
		c.bad++
		c.failed++
		c.overtaken = 0
		c.noted(v, now)
		if c.hopeful() {
			return
		}
		c.reason = "a probe failed: " + v.why
		if c.bad > 1 {
			c.reason = strconv.Itoa(c.bad) + " of " + number(c.bad+c.good, "probe") + " failed: " + v.why
		}
	case v.outcome == Ignore && !v.alive:
		if v.retryAfter > 0 { // no verdict, but the server said when to ask again
			c.notBefore = now.Add(min(v.retryAfter, c.cfg.MaxOpenFor))
			c.latest, c.earliest = c.notBefore, c.notBefore
			c.dismiss(now)
		} else {
			c.refund()
		}
		return
	default:
		c.good++
		c.failed, c.overtaken = 0, 0
		if v.slow {
			c.slowGood++
		}
		if c.good < c.cfg.Probes || float64(c.slowGood) < c.cfg.SlowRate*float64(c.good) {
			tell(c.calls, false)
			if c.calls.State() == gobreaker.StateClosed {
				c.close(c.probed(), now, ctx)
			}
			return
		}
		c.reason = number(c.slowGood, "slow probe") + " of " + strconv.Itoa(c.good)
	}
	tell(c.calls, true)
	c.open(v, now, ctx)
}

// lifeless is how many failures in a row make a host seem dead: as many as open a circuit
// if Config.Consecutive is zero.
const lifeless = 5

// alive reports whether one of the last calls or probes was good.
func (c *circuit) alive() bool {
	n := lifeless
	if c.cfg.Consecutive > 0 {
		n = min(n, c.cfg.Consecutive)
	}
	return c.failed < n
}

// gamble is how many failed probes one good one outweighs: while a seventh
// succeeds, a call that makes three attempts is served more often than one in
// three.
const gamble = 6

// hopeful reports whether a half-open circuit whose probe has failed can still
// close: a probe was good, and not many more have failed. With a FailureRate
// the host has shown life lately, and if all other probes are good, less than
// FailureRate of them have failed.
func (c *circuit) hopeful() bool {
	if !c.cfg.classic {
		return c.good > c.slowGood && c.bad <= gamble*c.good
	}
	return c.alive() && float64(c.bad) < c.cfg.FailureRate*float64(c.bad+c.cfg.Probes)
}

// open begins an open period, for the reason noted.
func (c *circuit) open(v verdict, now time.Time, ctx context.Context) {
	if c.state == Closed {
		c.trips++
		c.away(v)
		c.hold, c.sounded = now.Add(c.waited), false
	}
	c.hasty = v.hasty && (c.state != Closed && c.hasty || c.state == Closed && c.sure.Before(c.run))
	c.only = c.silenced(v, now)
	c.tripping, c.unanswered, c.guessed = false, 0, false
	c.allot(v, now)
	c.shift(Open, c.reason, now, ctx)
	c.dismiss(now)
}

// jitter makes d longer by up to a fifth, at least the wait that the server asked for, at
// most the longest.
func jitter(d, server, longest time.Duration) time.Duration {
	d = time.Duration(float64(d) * (1 + 0.2*rand.Float64()))
	if d > longest { // not all at the same instant
		d = time.Duration(float64(longest) * (0.8 + 0.2*rand.Float64()))
	}
	if server > d {
		d = min(server, longest)
		d = min(d+time.Duration(0.2*rand.Float64()*float64(d)), longest)
	}
	return d
}

// probed is the reason of a change that good probes make.
func (c *circuit) probed() string {
	reason := number(c.good, "good probe")
	if c.bad > 0 {
		reason += " and " + strconv.Itoa(c.bad) + " bad"
	}
	return reason
}

// close begins the closed state. If a probe failed, the probes are the first
// calls of its window; else nothing is counted.
func (c *circuit) close(reason string, now time.Time, ctx context.Context) {
	c.back(c.opened, now)
	c.guessed = false
	c.rest()
	c.unanswered, c.failed, c.lastBad, c.tripping = 0, 0, time.Time{}, false
	if c.bad > 0 {
		c.chance.seen(c.good, c.bad)
		c.lastBad = now
		c.calm.Store(false)
		c.start()
		for i := range c.good + c.bad { // the bad last, lest they be too many for a moment
			tell(c.calls, i >= c.good)
		}
	}
	c.chance.timeouts = 0
	c.shift(Closed, reason, now, ctx)
	c.line.inTurn = c.mute && c.cfg.Patience == 0
	c.line.ramp(now, c.cfg.Probes)
}

// shift notes a change. Whoever reads the epoch and then finds the circuit
// not shut must not seem younger than a change to Open: hence the order.
func (c *circuit) shift(to State, reason string, now time.Time, ctx context.Context) {
	from := c.state
	if to != Closed {
		c.shut.Store(true)
	}
	c.since = c.of.epoch.Add(1)
	if to == Closed {
		c.shut.Store(false)
	}
	c.state, c.changed, c.reason = to, now, reason
	if to != HalfOpen {
		c.probe, c.candidate = slot{}, slot{}
	}
	if c.cfg.OnStateChange != nil && from != to {
		ch := Change{Ctx: ctx, Host: c.host, Shard: c.shard, From: from, To: to, Reason: reason, At: now}
		if to == Open {
			ch.Until = c.latest
		}
		c.pending = append(c.pending, ch)
	}
}
