package throttle

import "time"

const (
	leastWindow = 2 * time.Second // shorter ones are paced well enough
	leastShare  = 8               // requests that a window holds, at least, to be worth spending at once
	cleanRuns   = 4               // windows spent without a refusal, after which more is tried
	trialPart   = 8               // a window's share is spread over this part of it
)

type windowStage uint8

const (
	noWindows windowStage = iota
	trialWindows
	sureWindows
)

// windows recognises a server that lets so many requests pass per window and
// then refuses all until the next: the waits it asks for are far longer than a
// request takes at the rate. Such a quota is best spent as it is given.
//
// One long wait proves nothing, because servers with buckets say constants. So
// the share of the first window is spread over part of the second: a bucket
// refills meanwhile and lets more pass, a window does not. The same spread is
// kept afterwards: a window that slides gives back what it took in the same
// shape. The zero windows knows nothing.
type windows struct {
	stage   windowStage
	size    float64       // requests per window
	period  time.Duration // of a window; zero: not known yet
	gap     time.Duration // between starts
	next    time.Time     // earliest start
	opened  time.Time     // the first start in this window
	margin  time.Duration // for requests that travel faster than those before
	ends    time.Time     // of this window; zero: not known
	last    time.Time     // the end before that, as the server said
	spent   float64       // started in this window
	out     int           // under way
	passed  float64       // accepted in this window
	refused bool          // in this window
	clean   int           // windows spent in a row without a refusal
	extra   float64       // beyond size that may be tried in this window
	against int           // windows in a row that contradict size
	not     time.Time     // until then, no trial: it was no window
}

// wait is how long the next start has to wait, if windows are what counts.
func (w *windows) wait(now time.Time) (time.Duration, bool) {
	if w.stage == noWindows {
		return 0, false
	}
	w.roll(now)
	if w.passed == 0 && w.out > 0 && !w.refused {
		return forever, true // the first asks whether the window has begun
	}
	if w.stage == trialWindows {
		if w.spent >= w.size && w.out > 0 && !w.refused {
			return forever, true // beyond what is known, one at a time
		}
		return max(0, w.next.Sub(now), w.ends.Sub(now)), true
	}
	switch {
	case w.spent < w.size, w.spent < w.size+w.extra && w.passed >= w.size:
		return max(0, w.next.Sub(now)), true
	}
	return max(0, w.ends.Sub(now)), true
}

// roll begins a new window when the old one is over.
func (w *windows) roll(now time.Time) {
	if w.ends.IsZero() || now.Before(w.ends) {
		return
	}
	if w.passed >= w.size && !w.refused {
		w.clean++
		w.against = 0
	}
	w.extra = 0
	if w.clean >= cleanRuns {
		w.clean, w.extra = 0, 1
	}
	w.opened, w.ends = time.Time{}, time.Time{}
	w.spent, w.passed, w.refused = 0, 0, false
}

func (w *windows) start(now time.Time) {
	if w.stage != noWindows {
		w.roll(now)
	}
	if w.opened.IsZero() {
		w.opened = now
		if w.period > 0 {
			w.ends = now.Add(w.period + w.margin)
		}
	}
	w.spent++
	w.out++
	w.next = later(w.next, now).Add(w.gap)
}

// done notes that a request is under way no more.
func (w *windows) done() { w.out = max(0, w.out-1) }

// good notes an accepted answer. It reports the rate that was accepted when
// that proved that there are no windows; else zero.
func (w *windows) good(now time.Time) (rate float64) {
	w.passed++
	switch {
	case w.refused && w.passed > w.size:
		w.size = w.passed // on its way when the refusal came
	case w.stage == sureWindows && w.extra > 0 && w.passed >= w.size+w.extra:
		w.size += w.extra
		w.extra *= 2
	case w.stage == trialWindows && !w.refused && w.passed > w.size*1.25+2:
		rate = w.passed / max(now.Sub(w.opened), 10*time.Millisecond).Seconds()
		*w = windows{not: now.Add(forgetRate), out: w.out}
	}
	return rate
}

// refuse learns from the first refusal of a burst.
func (w *windows) refuse(now time.Time, said hint, rtt time.Duration) {
	ends := now.Add(said.wait)
	if w.stage == sureWindows && w.passed < 0.95*w.size-1 && said.known && said.wait <= leastWindow && w.against < 4 {
		// A little early: what comes soon is not the next window.
		w.against++
		if w.passed == 0 {
			w.opened, w.last, w.ends = time.Time{}, ends, ends
		}
		w.next = ends
		w.refused = true
		return
	}
	if !said.known || w.passed < leastShare || now.Before(w.not) || w.period == 0 && said.wait < leastWindow {
		if w.against++; w.against >= 2 || w.stage != sureWindows {
			*w = windows{not: w.not, out: w.out}
		}
		return
	}
	alike := w.passed >= 0.95*w.size-1
	switch {
	case w.stage == noWindows:
		w.stage, w.size = trialWindows, w.passed
	case w.stage == trialWindows && alike:
		w.stage, w.against = sureWindows, 0
		w.size = min(w.size, w.passed)
		w.period = roundWindow(max(ends.Sub(w.last), ends.Sub(w.opened)))
	case alike:
		w.size, w.against = min(w.size, w.passed), 0
	default:
		w.size = w.passed
		if w.against++; w.against >= 3 {
			*w = windows{not: now.Add(forgetRate), out: w.out}
			return
		}
	}
	if w.size > 0 {
		w.gap = time.Duration(float64(max(w.period, said.wait)) / trialPart / w.size)
	}
	w.last, w.ends, w.next = ends, ends, ends
	w.margin = rtt / 2
	w.clean, w.extra, w.refused = 0, 0, true
}

// roundWindow is the length of a window, measured between two ends that were
// both rounded to seconds, as people would choose it.
func roundWindow(d time.Duration) time.Duration {
	for _, s := range [...]time.Duration{2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 86400} {
		if (s*time.Second - d).Abs() < time.Second {
			return s * time.Second
		}
	}
	return (d + time.Second - 1).Truncate(time.Second)
}
