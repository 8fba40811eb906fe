package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// StaleAfter is after how long an answer says nothing any more of a limit whose reset
// it did not say.
const StaleAfter = 60 * time.Second

// How often a limit's word may be contradicted before it is obeyed no more.
const (
	creditShown  = 16 // what is left was seen to fall: a bucket or a sliding window gives some of it back all the time
	creditProved = 4  // times as often after each refusal that bore it out, so that it is tried ever more seldom
	mostCredit   = 64 // a server that has ceased to mean it is believed no longer than that
)

// A Belief is how far the word of a stated limit is taken. Its rule: what could be a
// quota, a limit and a part of it that is left, is obeyed until it is
// contradicted; anything less is not, until it behaves as one. It does if what
// is left falls, or if a refusal comes with nothing left. It does not if an
// accepted request takes nothing from what is left, or if the reset brings
// nothing: then it is contradicted.
//
// The zero Belief has heard nothing.
type Belief struct {
	credit int  // contradictions that it bears; zero: it is not obeyed
	stake  int  // credit that the last refusal gave it
	heard  bool // of what could be a quota
	vain   bool // contradicted, and nothing has spoken for it since

	// Of the answers that spoke of the same window:
	ends        meter.Instant // of the window, as first said; zero: nobody said
	began       meter.Instant // zero: there was none yet
	last        float64       // left, as the last of them said
	least, most float64       // left
	spent       float64       // by those accepted after the first of them
}

// A Word is what an answer states of a limit, in units, and how it came about.
type Word struct {
	Left  float64
	Size  float64       // zero: unknown
	Cost  float64       // of the request, at least
	Reset meter.Instant // zero: nobody said
	Quota bool          // it could be a quota's: a size, and no more left than that

	Refused bool
	Asks    bool // the request was let through to ask what a reset has brought
	Holds   bool // by the word of the limit a request had to wait, or will
	Flows   bool // units come back all the time
}

// Weigh takes an answer for or against the word of the limit, before it is learned
// from. It reports whether the limit is to be obeyed.
func (b *Belief) Weigh(now meter.Instant, w Word) (obeyed bool) {
	if w.Quota && !b.heard {
		b.heard, b.credit = true, max(b.credit, 1)
	}
	if w.Refused && w.Left < 1 {
		b.stake = min(max(creditProved, creditProved*b.stake), mostCredit)
		b.credit, b.vain = max(b.credit, b.stake), false
	}
	switch {
	case w.Asks && !w.Refused:
		if w.Left <= b.last && w.Holds { // the reset brought nothing
			b.contradict()
		}
		b.begin(now, &w)
	case b.began == 0 || b.over(now, w.Left, w.Size):
		b.begin(now, &w)
	default:
		b.add(&w)
		if !w.Refused && w.Holds && b.spent-(b.most-b.least)-b.flowed(now, &w) > 1-1e-9 && !w.Flows {
			b.contradict() // what was accepted took nothing
			b.begin(now, &w)
		}
	}
	return b.credit > 0
}

// Vain reports whether the word was contradicted, and nothing has spoken for it since.
func (b *Belief) Vain() bool { return b.vain }

// Firm reports whether one contradiction would not be the end of it.
func (b *Belief) Firm() bool { return b.credit > 1 }

// over reports whether an answer that says left speaks of another window than
// those before it.
func (b *Belief) over(now meter.Instant, left, size float64) bool {
	if rise := left - b.last; rise > 2 && rise > size/4 {
		return true // too much for a trickle
	}
	if b.ends == 0 {
		return now-b.began > meter.Instant(StaleAfter)
	}
	return now >= b.ends
}

func (b *Belief) begin(now meter.Instant, w *Word) {
	b.began, b.ends, b.last, b.least, b.most, b.spent = now, w.Reset, w.Left, w.Left, w.Left, 0
}

// flowed is what a bucket that is full at its reset may have got back since the window
// began. What was never seen to fall is no bucket.
func (b *Belief) flowed(now meter.Instant, w *Word) float64 {
	if !b.Firm() {
		return 0
	}
	return refill.Rate(w.Size, w.Left, w.Reset.Sub(now)) * now.Sub(b.began).Seconds()
}

// add takes in one more answer about the window.
func (b *Belief) add(w *Word) {
	switch b.last = w.Left; {
	case w.Left < b.least:
		b.least = w.Left
		b.credit, b.vain = max(b.credit, creditShown), false
	case w.Left > b.most:
		b.most = w.Left
	}
	if !w.Refused {
		b.spent += w.Cost
	}
}

func (b *Belief) contradict() { b.credit, b.vain = max(0, b.credit-1), true }
