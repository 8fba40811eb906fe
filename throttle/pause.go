package throttle

import (
	"time"
)

const (
	firstGuess   = 500 * time.Millisecond // of a pause, when the server gives no hint and nothing was measured
	leastGuess   = 20 * time.Millisecond
	mostGuess    = 60 * time.Second
	guessPart    = 5 // a guess above shortGuess is at most that part of the time since the first refusal
	firstSpread  = 2 * time.Second
	mostSpread   = 30 * time.Second
	mostSlack    = 2 * time.Second // how much too short hints of real servers were seen to be
	mostBelieved = 25 * time.Hour  // of a hint, however well supported; then one request asks again
	settledIn    = 8               // good answers after which a client is one of a steady flow, not of a herd

	// A guess doubles up to shortGuess at once. That is more than ten seconds, so that a
	// ban of ten, which each refusal begins anew, comes to its end. And it is so little
	// that one who is refused by a limit per minute asks again within MaxWait, 75 s.
	shortGuess = 12 * time.Second
)

// A hint is how long a refused request was told to stay away.
type hint struct {
	wait      time.Duration
	known     bool
	supported bool   // something else the server said agrees
	source    string // in words: "said by Retry-After"
}

// A hold is a pause that a server asked for or a refusal suggests. It ends by
// one request that asks whether it is over. The zero hold is open, and
// so is none. Its owner guards it.
type hold struct {
	until time.Time // nothing starts before
	sure  time.Time // nothing starts before by the server's word; what until is later is a guess
	since time.Time // when it was last prolonged: a refusal of what was sent before tells nothing new
	began time.Time // when the first of the refusals in a row came
	ended time.Time // when the pause after that first one was over
	told  time.Time // when the last hint ends, however far that is

	strikes int           // re-openings refused in a row
	slack   time.Duration // by how much hints have proved too short
	asking  bool          // after until, one request at a time goes until one is answered well
	asked   bool          // that one is under way
	capped  bool          // until is nearer than the hint
	met     bool          // answered well since the last refusal
	source  string
}

// refuse learns from a refused answer to a request sent at sent. guess is the
// first pause to try without a hint, spread a random number of [0,1), fresh
// whether the client is too new to be part of a steady flow. It reports
// whether this was news rather than one more answer of the same burst.
func (h *hold) refuse(now, sent time.Time, said hint, guess, maxPause time.Duration, fresh bool, spread float64) bool {
	news := h.since.IsZero() || sent.After(h.since)
	if news {
		said.supported = h.again(now, said) || said.supported
	}
	if said.known {
		wait, _ := believe(said, maxPause)
		h.sure = later(h.sure, now.Add(wait))
	}
	if !news {
		if said.known {
			h.prolong(now, said, maxPause)
		}
		return false
	}
	h.strikes = h.inVain(sent)
	wait := h.length(said, guess, maxPause, fresh, spread)
	if h.strikes == 0 {
		h.began = now
	} else if !said.known {
		wait = min(wait, max(shortGuess, now.Sub(h.began)/guessPart))
	}
	h.since, h.met = now, false
	h.asking, h.source = true, said.source
	if end := now.Add(wait); end.After(h.until) {
		h.until = end
	}
	if h.strikes == 0 {
		h.ended = h.until
	}
	return true
}

// prolong heeds the hint of one more answer of the same burst.
func (h *hold) prolong(now time.Time, said hint, maxPause time.Duration) {
	wait, capped := believe(said, maxPause)
	if !now.Add(wait).After(h.until) {
		return
	}
	h.until, h.capped, h.asking, h.source = now.Add(wait), capped, true, said.source
	if h.met { // the pause was over, and begins again
		h.met, h.strikes, h.ended = false, 0, h.until
	}
}

// again reports whether a hint ends when the one before it did. Refusals that are
// some time apart agree only if they speak of an instant.
func (h *hold) again(now time.Time, said hint) bool {
	last := h.told
	if h.told = (time.Time{}); said.known {
		h.told = now.Add(said.wait)
	}
	return said.known && !last.IsZero() && now.Sub(h.since) > 2*mostSlack && h.told.Sub(last).Abs() <= mostSlack
}

// inVain is how many requests in a row have asked whether the pause is over
// and were refused, if the one sent at sent is.
func (h *hold) inVain(sent time.Time) int {
	if h.since.IsZero() || h.met || !sent.After(h.since) {
		return 0
	}
	return h.strikes + 1
}

// guessed is the pause after a refusal without a hint: first, or twice as long for each
// that was in vain before.
func guessed(first, maxPause time.Duration, inVain int) time.Duration {
	first = max(leastGuess, first)
	for range min(inVain, 20) {
		first = min(2*first, mostGuess, maxPause)
	}
	return first
}

// length is the pause for a refusal that is news.
func (h *hold) length(said hint, guess, maxPause time.Duration, fresh bool, spread float64) time.Duration {
	h.capped = false
	if !said.known {
		return time.Duration(float64(guess) * (0.75 + 0.5*spread)) // so that strangers do not meet again
	}
	wait, capped := believe(said, maxPause)
	h.capped = capped
	if capped {
		return wait
	}
	wait += h.slack
	grow := 250 * time.Millisecond << min(h.strikes, 7)
	if h.strikes > 0 {
		wait += min(grow, mostSpread)
	}
	if fresh {
		// Perhaps one of a thousand processes that were all refused at once.
		room := min(max(time.Second, said.wait/2), mostSpread) << min(h.strikes, 5)
		if h.strikes == 0 {
			room = min(room, firstSpread)
		}
		wait += time.Duration(spread * float64(min(room, mostSpread)))
	}
	return wait
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// believe bounds a hint.
func believe(said hint, maxPause time.Duration) (wait time.Duration, capped bool) {
	most := maxPause
	if said.supported {
		most = max(maxPause, mostBelieved)
	}
	if said.wait > most {
		return most, true
	}
	return max(0, said.wait), false
}

// wait is how long a request has to wait because of h; forever means until the
// request that asks is answered.
func (h *hold) wait(now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	if d := h.until.Sub(now); d > 0 {
		return d
	}
	if h.asking && h.asked {
		return forever
	}
	return 0
}

// start notes that a request was let through. It reports whether that is the
// one that asks.
func (h *hold) start() bool {
	if h != nil && h.asking && !h.asked {
		h.asked = true
		return true
	}
	return false
}

// over ends what start began.
func (h *hold) over(asks bool) {
	if h != nil && asks {
		h.asked = false
	}
}

// good notes an answer that was no refusal to a request sent at sent.
func (h *hold) good(sent time.Time) {
	if h == nil || sent.Before(h.until) || h.since.IsZero() || h.met {
		return
	}
	if h.strikes > 0 && !h.capped {
		h.slack = min(mostSlack, max(h.slack, sent.Sub(h.ended)))
	} else {
		h.slack = h.slack * 9 / 10
	}
	h.met, h.asking, h.capped = true, false, false
}

// lift ends the pause at once.
func (h *hold) lift() {
	if h == nil {
		return
	}
	*h = hold{slack: h.slack, asked: h.asked}
}
