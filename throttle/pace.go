package throttle

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

const (
	restartAt = 0.85             // of the rate that was measured as accepted
	firstK    = 7 * time.Second  // until the old rate is reached again
	mostK     = 12 * time.Second // likewise
	slowRate  = 1.5              // per second: below, requests are few
	slowAt    = 0.9              // where these restart
	slowSteps = 60               // requests until the old rate is reached again
	slowK     = 60               // seconds, if they would take longer
	fullEpoch = time.Second      // shorter ones do not measure
	fewest    = 5                // accepted answers that make a measurement
	catchUp   = 5 * time.Millisecond
	recentFor = 2 * time.Second
)

// A pace is the rate at which a host is asked that refuses by 503s which say no more.
// One too many in a row, and it looks as though the host were down: so no candidate is
// worth trying. It reacts once to the refusals of one burst: it restarts a little below
// what was measured as accepted, returns to that along a cubic and then feels its way
// beyond, with curves whose scale is the rate itself. The curve is CUBIC's (RFC 9438)
// without its absolute constant. The zero pace limits nothing. Its owner guards it.
type pace struct {
	rate, top, low float64 // requests per second: now (zero: no limit), where it was refused, where it restarted
	before         float64 // top when the pause began
	k              time.Duration
	from           instant // the curve's zero
	next           instant // of the next start
	reacted        instant // refusals of what was sent before are old news
	anchor         instant // when what was accepted is counted from; zero: it was not refused yet
	accepted       float64 // since then
	recent         float64 // accepted per second, lately
	heard          instant // when recent was true
	used           instant // until when use was judged
	sent           float64 // since then
	might          float64 // have been sent since then, had all been used
	moved          instant // until when might was reckoned
	last           instant
}

// wait is how long the next start has to wait.
func (f *pace) wait(now instant) time.Duration {
	if f == nil || f.rate == 0 {
		return 0
	}
	return max(0, f.next.Sub(now))
}

// start notes a start.
func (f *pace) start(now instant) {
	if now.Sub(f.last) > forgetRate {
		*f = pace{}
	}
	f.last = now
	if f.rate == 0 {
		return
	}
	f.grow(now)
	if f.sent++; f.rate == 0 {
		return
	}
	gap := min(time.Duration(float64(time.Second)/f.rate), cooldown.MostGuess)
	f.next = max(f.next, now.Add(-min(catchUp, gap))).Add(gap)
}

// grow moves the rate along its curve. It stands still while the rate is not
// used, because a rate nobody tried is not known to be good.
func (f *pace) grow(now instant) {
	// What might have been sent is summed up by the rate as it was then: by the
	// rate that it has grown to, a flow that uses all of it seems idle.
	f.might += f.rate * max(0, now.Sub(f.moved)).Seconds()
	f.moved = now
	if gone := now.Sub(f.used); gone >= max(500*time.Millisecond, time.Duration(4/f.rate*float64(time.Second))) {
		if f.sent < 0.5*f.might {
			f.from = f.from.Add(gone)
		}
		f.used, f.sent, f.might = now, 0, 0
	}
	t := now.Sub(f.from).Seconds()
	if t <= 0 {
		return
	}
	x := t/f.k.Seconds() - 1
	if x < 0 {
		f.rate = f.low + (f.top-f.low)*(1+x*x*x)
	} else {
		f.rate = f.top * (1 + x*x*x)
	}
	if x > 8 {
		// Hundreds of times what was once refused: that limit is gone.
		f.rate, f.reacted, f.anchor = 0, 0, 0
	}
}

// good notes an accepted answer.
func (f *pace) good(now instant) {
	f.accepted++
	f.recent = f.recently(now) + 1/recentFor.Seconds()
	f.heard = now
}

// recently is the rate accepted in about the last two seconds.
func (f *pace) recently(now instant) float64 {
	return f.recent * math.Exp(-now.Sub(f.heard).Seconds()/recentFor.Seconds())
}

// guess is the first pause to try: what one request takes at the rate.
func (f *pace) guess() time.Duration {
	if f == nil || f.top <= 0 {
		return cooldown.FirstGuess
	}
	return min(4*cooldown.FirstGuess, time.Duration(0.8/f.top*float64(time.Second)))
}

// refuse reacts to a refusal of a request sent at sent. accepted is how many a second
// were accepted before the first one, out how many are under way. strikes is how many requests in a row have asked in
// vain whether the pause is over: after some, the pause was too short rather than the
// rate too high.
func (f *pace) refuse(now, sent instant, accepted float64, out, strikes int) {
	if f.reacted != 0 && sent <= f.reacted {
		return
	}
	if f.reacted = now; strikes > 2 {
		if strikes == 3 {
			f.top, f.low, f.rate = f.before, restartAt*f.before, restartAt*f.before
		}
		return
	}
	f.cut(f.measure(now, accepted, out))
	if strikes == 0 {
		f.before = f.top
	}
	f.resume(now)
}

// cut restarts the curve below top.
func (f *pace) cut(top float64) {
	least := firstK
	if f.top > 0 && math.Abs(top-f.top) <= 0.1*f.top {
		least = min(mostK, f.k*3/2)
	}
	// At one a second, a refusal says little, and seconds are few requests.
	f.k, f.top, f.low = least, top, restartAt*top
	if top < slowRate {
		f.k, f.low = max(least, time.Duration(min(slowK, slowSteps/top)*float64(time.Second))), slowAt*top
	}
	f.rate = f.low
}

// measure is the rate that was accepted, and starts the next measurement.
func (f *pace) measure(now instant, accepted float64, out int) float64 {
	if f.anchor == 0 {
		// Its own pace may be that of a client with little to ask.
		f.anchor, f.accepted = now, 0
		return max(accepted, 1/(4*cooldown.FirstGuess).Seconds())
	}
	span := now.Sub(f.anchor)
	top := f.rate
	if f.accepted >= fewest {
		// Slower growth than the host's leaves units to waste: the truth lies between
		// the mean and what was accepted last.
		mean := f.accepted / span.Seconds()
		mean = (mean + max(mean, f.recently(now))) / 2
		top = min(max(mean, f.rate/2), f.rate)
	}
	// No more can have flowed in than was accepted
	// or is under way, and one that was refused.
	if open := span.Seconds(); open > 0 && f.accepted < 2*fewest {
		top = min(top, (f.accepted+float64(out)+1)/open)
	}
	if span >= fullEpoch && f.accepted >= fewest || span > time.Minute {
		f.anchor, f.accepted = now, 0
	}
	return top
}

// resume puts the curve's zero, at the latest to when the pause is over.
func (f *pace) resume(t instant) {
	if f != nil {
		f.from, f.used, f.moved, f.sent, f.might, f.next = t, t, t, 0, 0, t
	}
}

func (f *pace) words() string {
	return "about " + amount(f.rate) + "/s, found by its refusals"
}

// lately counts what came in the last recentFor or so, as a sliding counter does. The
// zero lately has counted nothing. Its owner guards it.
type lately struct {
	since         instant
	before, these uint32 // in the time before since, and from then on
}

func (c *lately) add(now instant) {
	c.turn(now)
	c.these++
}

// rate is how many came per second.
func (c *lately) rate(now instant) float64 {
	c.turn(now)
	left := 1 - now.Sub(c.since).Seconds()/recentFor.Seconds()
	return (float64(c.before)*left + float64(c.these)) / recentFor.Seconds()
}

func (c *lately) turn(now instant) {
	d := now.Sub(c.since)
	if d < recentFor {
		return
	}
	if c.before = c.these; d >= 2*recentFor {
		c.before = 0
	}
	c.since, c.these = now, 0
}
