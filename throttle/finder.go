package throttle

import (
	"math"
	"time"
)

const (
	restartAt  = 0.85 // of the rate that was measured as accepted
	resumeAt   = 0.95
	firstK     = 7 * time.Second // until the old rate is reached again
	guessedK   = 3 * time.Second // likewise, when no refusal told the rate
	mostK      = 12 * time.Second
	mostPauses = 24          // likewise in pauses, when a bucket's rate was gauged
	slowRate   = 1.5         // per second: below, requests are few
	slowAt     = 0.9         // where these restart
	slowSteps  = 60          // requests until the old rate is reached again
	slowK      = 60          // seconds, if they would take longer
	fullEpoch  = time.Second // shorter ones do not measure
	fewest     = 5           // accepted answers that make a measurement
	catchUp    = 5 * time.Millisecond
	recentFor  = 2 * time.Second
	forgetRate = 10 * time.Minute
	faster     = 0.25 // than the rate, while there is
	savedPart  = 0.6  // of what a bucket has saved up in a pause, but one unit
)

// A finder finds the rate at which a server that only refuses lets requests
// pass, as TCP finds that of a link. It reacts once to the refusals of one
// burst: it restarts a little below what was measured as accepted, returns to
// that along a cubic and then feels its way beyond, with curves whose scale is
// the rate itself, so that one a second and a thousand are found alike.
// A server whose refusals look like those of a window is left to windows.
// The zero finder limits nothing. Its owner guards it.
//
// The curve is CUBIC's (RFC 9438) without its absolute constant; measuring
// between two moments at which the bucket was empty is what BBR does to
// policers.
type finder struct {
	rate, top, low float64 // requests per second: now (zero: no limit), where it was refused, where it restarted
	before         float64 // top when the pause began
	k              time.Duration
	from           time.Time     // the curve's zero
	next           time.Time     // of the next start
	reacted        time.Time     // refusals of what was sent before are old news
	anchor         time.Time     // when the server's bucket was last known to be empty
	accepted       float64       // since then
	held           time.Duration // of that, in pauses that the server asked for
	recent         float64       // accepted per second, lately
	heard          time.Time     // when recent was true
	began          time.Time     // of the first start, or of the first after a long idling
	first          time.Time     // when the first was accepted since then; zero: none
	total          float64       // accepted since then
	used           time.Time     // until when use was judged
	sent           float64       // since then
	might          float64       // have been sent since then, had all been used
	moved          time.Time     // until when might was reckoned
	last           time.Time
	windows        windows
	fates          fates   // of the requests, what it makes of them apart
	gauge          *gauge  // nil: no burst was refused with a hint when to come back
	ramp           *ramp   // nil: the rate is known by and large; else there is a gauge
	within         float64 // the part of top that it may be off as it was gauged; zero: it was not
	saved          float64 // units that it has beyond what flows in, as far as they are to be spent
}

// wait is how long the next start has to wait.
func (f *finder) wait(now time.Time) time.Duration {
	if f == nil {
		return 0
	}
	if d, ok := f.windows.wait(now); ok {
		return d
	}
	if f.rate == 0 {
		return 0
	}
	return max(0, f.next.Sub(now))
}

// outlook is wait at a time that may be still to come: f stays as it is.
func (f *finder) outlook(now time.Time) time.Duration {
	then := *f
	return then.wait(now)
}

// start notes a start.
func (f *finder) start(now time.Time) {
	if now.Sub(f.last) > forgetRate {
		f.forget()
	}
	if f.began.IsZero() {
		f.began = now
	}
	f.last = now
	f.windows.start(now)
	if f.rate == 0 {
		return
	}
	f.grow(now)
	f.gauge.start(now)
	f.sent++
	if f.rate == 0 {
		return
	}
	gap := min(time.Duration(float64(time.Second)/f.rate), mostGuess)
	late := min(catchUp, gap)
	if f.saved > 0 {
		gap = time.Duration(float64(gap) / (1 + faster))
		f.saved -= faster / (1 + faster)
	}
	f.next = later(f.next, now.Add(-late)).Add(gap)
}

// forget makes f as good as new but for what is under way.
func (f *finder) forget() {
	if f != nil {
		*f = finder{windows: windows{out: f.windows.out}, fates: f.fates}
	}
}

// binds reports whether forgetting f would lose something.
func (f *finder) binds(now time.Time) bool {
	return f != nil && (f.rate > 0 && now.Sub(f.last) < forgetRate || f.windows.stage != noWindows)
}

// grow moves the rate along its curve. It stands still while the rate is not
// used, because a rate nobody tried is not known to be good.
func (f *finder) grow(now time.Time) {
	if f.ramp != nil {
		if f.rate = f.ramp.rate(f.gauge.starts, f.top); f.ramp.over(f.gauge.starts, f.top) {
			f.low, f.ramp, f.from = f.top, nil, now.Add(-f.k)
		}
		return
	}
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
	k := f.k.Seconds()
	if t <= 0 {
		return
	}
	x := t/k - 1
	if x < 0 {
		f.rate = f.low + (f.top-f.low)*(1+x*x*x)
	} else {
		f.rate = f.top * (1 + x*x*x)
	}
	if x > 8 {
		// Hundreds of times what was once refused: that limit is gone.
		f.rate, f.reacted, f.anchor = 0, time.Time{}, time.Time{}
		f.gauge, f.within = nil, 0
	}
}

// good notes an accepted answer to a request sent at sent.
func (f *finder) good(now, sent time.Time) {
	f.gauge.good(sent)
	if f.total == 0 {
		f.first = now
	}
	f.accepted++
	f.total++
	f.recent = f.recently(now) + 1/recentFor.Seconds()
	f.heard = now
	if rate := f.windows.good(now); rate > 0 {
		f.top, f.low, f.rate, f.k, f.ramp = rate, rate, rate, guessedK, nil
		f.resume(now)
	}
}

// recently is the rate accepted in about the last two seconds.
func (f *finder) recently(now time.Time) float64 {
	return f.recent * math.Exp(-now.Sub(f.heard).Seconds()/recentFor.Seconds())
}

// guess is the first pause to try when the server gives no hint: what one
// request takes at the rate.
func (f *finder) guess() time.Duration {
	if f == nil || f.top <= 0 {
		return firstGuess
	}
	return min(firstPause(hint{}), time.Duration(0.8/f.top*float64(time.Second)))
}

// refuse reacts to a refusal of a request sent at sent. said is the server's
// hint, rtt the time a round trip takes, strikes how many requests in a row
// have asked in vain whether the pause is over: after some, the pause was too
// short rather than the rate too high. It reports whether it reacted.
func (f *finder) refuse(now, sent time.Time, said hint, rtt time.Duration, strikes int) bool {
	if f.began.IsZero() {
		f.began = now
	}
	if !f.reacted.IsZero() && !sent.After(f.reacted) {
		return false
	}
	f.windows.refuse(now, said, rtt)
	if f.windows.stage == sureWindows || strikes > 2 {
		if strikes == 3 {
			f.top, f.low, f.rate = f.before, restartAt*f.before, restartAt*f.before
		}
		f.reacted = now
		return true
	}
	f.cut(f.passed(now, sent, said, rtt), said)
	if strikes == 0 {
		f.before = f.top
	}
	f.reacted = now
	if said.known {
		f.held += said.wait
	}
	f.resume(now)
	return true
}

// resume puts the curve's zero, at the latest to when the pause is over.
func (f *finder) resume(t time.Time) {
	f.gauge.reset()
	f.from, f.used, f.moved, f.sent, f.might = t, t, t, 0, 0
	f.next = t
}

// lift lets a flow that would resume later do so now.
func (f *finder) lift(now time.Time) {
	if f != nil && f.next.After(now) {
		f.resume(now)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
