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
func (c *circuit) count(v verdict, now time.Time, ctx context.Context) {
	if v.answered || v.outcome == Success {
		c.unanswered = 0
	}
	if v.outcome == Ignore {
		return
	}
	if v.outcome == Success {
		c.failed = 0
		if !v.slow && (c.calls == nil || now.Sub(c.lastBad) > c.cfg.Window) {
			c.rest()
			return
		}
	} else {
		c.failed++
		c.noted(v, now)
		if !v.answered && !c.interrupted(v, now) {
			if c.unanswered++; c.unanswered == 1 {
				c.run = now
			}
		}
	}
	if v.outcome == Failure || v.slow {
		c.lastBad = now
		c.calm.Store(false)
	}
	if c.calls == nil {
		c.start()
	}
	c.feed(v)
	if c.calls.State() != gobreaker.StateClosed {
		c.open(v, now, ctx)
	}
}

// rest forgets the counts of a window with nothing bad in it.
func (c *circuit) rest() {
	c.calls, c.slow = nil, nil
	c.calm.Store(true)
}

// feed tells the cores of one call, and makes the one that counts trip if
// another rule says so.
func (c *circuit) feed(v verdict) {
	n := c.cfg.Consecutive
	switch {
	case n < 0 || v.outcome != Failure:
	case c.unanswered >= n:
		c.tripping, c.reason = true, number(c.unanswered, "failure")+" in a row without an answer"
	case c.failed >= 4*n:
		c.tripping, c.reason = true, number(c.failed, "failure")+" in a row"
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
			c.earliest = c.notBefore
			c.dismiss(now)
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

// lifeless is how many failures in a row make a host seem dead.
const lifeless = 5

// alive reports whether one of the last calls or probes was good.
func (c *circuit) alive() bool {
	n := lifeless
	if c.cfg.Consecutive > 0 {
		n = min(n, c.cfg.Consecutive)
	}
	return c.failed < n
}

// hopeful reports whether a half-open circuit whose probe has failed can still
// close: the host has shown life lately, and if all other probes are good,
// less than FailureRate of them have failed.
func (c *circuit) hopeful() bool {
	return c.alive() && float64(c.bad) < c.cfg.FailureRate*float64(c.bad+c.cfg.Probes)
}

// open begins an open period, for the reason noted.
func (c *circuit) open(v verdict, now time.Time, ctx context.Context) {
	alive, grace := c.alive() && !v.slow, firstPeriods
	if alive || c.state == HalfOpen {
		grace = max(grace, c.cfg.Window)
	}
	if c.state == Closed {
		c.trips++
		if c.grow.IsZero() || now.Sub(c.changed) > c.period || alive { // not the same outage as before
			c.grow, c.doubled = now.Add(grace), 0
		}
	}
	c.only = c.silenced(v, now)
	c.tripping, c.unanswered = false, 0
	switch {
	case c.state == HalfOpen && c.good > c.slowGood: // not dead, only bad at times
		c.grow, c.doubled = now.Add(grace), 0
	case !now.Before(c.grow) && c.cfg.OpenFor<<c.doubled < c.cfg.MaxOpenFor:
		c.doubled++
	}
	c.period = min(c.cfg.OpenFor<<c.doubled, c.cfg.MaxOpenFor)
	c.notBefore = now.Add(jitter(c.period, v.retryAfter, c.cfg.MaxOpenFor))
	c.earliest = now.Add(max(v.retryAfter, min(c.period, max(c.cfg.OpenFor, lastChances))))
	if c.earliest.After(c.notBefore) {
		c.earliest = c.notBefore
	}
	c.shift(Open, c.reason, now, ctx)
	c.dismiss(now)
}

// jitter makes d longer or shorter by up to a fifth, at least the wait that
// the server asked for, at most the longest.
func jitter(d, server, longest time.Duration) time.Duration {
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
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
	c.rest()
	c.unanswered, c.failed, c.lastBad, c.tripping = 0, 0, time.Time{}, false
	if c.bad > 0 {
		c.lastBad = now
		c.calm.Store(false)
		c.start()
		for i := range c.good + c.bad { // the bad last, lest they be too many for a moment
			tell(c.calls, i >= c.good)
		}
	}
	c.shift(Closed, reason, now, ctx)
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
			ch.Until = c.notBefore
		}
		c.pending = append(c.pending, ch)
	}
}
