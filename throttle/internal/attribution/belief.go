package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// StaleAfter is for how long an answer without a reset says something of a limit: most limits
// are per minute or shorter.
const StaleAfter = 60 * time.Second

// A credit is how many contradictions it takes until a limit is not obeyed any more.
const (
	// creditShown is the credit of a limit whose units left were seen to fall. It is large
	// because a bucket or a sliding window gets some back all the time, which may look like
	// a contradiction.
	creditShown = 16
	// creditProved is the credit after a refusal with nothing left, and the factor by which it
	// grows with each further one, so that the limit is doubted more and more seldom.
	creditProved = 4
	// mostCredit bounds that: a server whose statements are wrong from now on is obeyed for
	// no more contradictions.
	mostCredit = 64
)

// A Belief says whether what a server states of a limit is obeyed. A statement that could be
// a quota, with a size and a part of it that is left, is obeyed until it is contradicted. Any
// other one is obeyed only when it has behaved like a quota: what is left falls, or a refusal
// comes with nothing left. It is contradicted if an accepted request takes nothing from what is
// left, or if the reset brings nothing.
//
// The zero Belief has heard nothing.
type Belief struct {
	credit int  // the credit left; zero: the limit is not obeyed
	stake  int  // the credit that the last refusal gave
	heard  bool // a statement that could be a quota was heard
	vain   bool // contradicted, and nothing has confirmed it since

	// Of the answers that were about the same window:
	ends        meter.Instant // the end of the window, as the first one said; zero: it did not
	began       meter.Instant // when the first one was heard; zero: there is none yet
	last        float64       // units left, as the last one said
	least, most float64       // the least and the most units left
	spent       float64       // units of requests accepted after the first one
}

// A Word is what an answer states of a limit, in units, and the circumstances.
type Word struct {
	Left  float64
	Size  float64       // of the whole limit; zero: unknown
	Cost  float64       // of the request, at least
	Reset meter.Instant // zero: not stated
	Quota bool          // it could be a quota: it has a size, and no more than that is left

	Refused bool // the request was refused
	Asks    bool // the request was let through to ask what a reset has brought
	Holds   bool // a request had to wait because of the limit, or will have to

	// Flows is how many units come back every second, at most, of a limit of which some do
	// all the time. Zero: none do.
	Flows float64
}

// Weigh weighs an answer for or against the limit. It is called before anything else is
// learned from the answer. It reports whether the limit is to be obeyed.
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
		b.add(w.Left, w.Cost, w.Refused)
		if !w.Refused && w.Holds && b.spent-(b.most-b.least)-b.flowed(now, &w) > 1-1e-9 {
			b.contradict() // what was accepted took nothing
			b.begin(now, &w)
		}
	}
	return b.credit > 0
}

// Adds is Weigh of a Word of an accepted request that does not ask, and whose Quota and Holds
// make no difference: it is about the same window as those before, and nothing holds a request
// up. Otherwise it reports false for ok, and has learned nothing.
func (b *Belief) Adds(now meter.Instant, left, cost float64) (obeyed, ok bool) {
	if !b.heard || b.began == 0 || now >= b.ends || left-b.last > 2 {
		return false, false
	}
	b.add(left, cost, false)
	return b.credit > 0, true
}

// Vain reports whether the limit was contradicted, and nothing has confirmed it since.
func (b *Belief) Vain() bool { return b.vain }

// Firm reports whether the limit would still be obeyed after one more contradiction.
func (b *Belief) Firm() bool { return b.credit > 1 }

// over reports whether an answer that says left is about another window than those before.
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

// flowed is how many units may have come back since the window began: at the rate that is
// known, together with the part of a unit that was there and not stated, or as many as a bucket
// gets back that is full at its reset. A limit that was not seen to fall is no bucket.
func (b *Belief) flowed(now meter.Instant, w *Word) float64 {
	if w.Flows > 0 {
		return 1 + w.Flows*max(1e-9, now.Sub(b.began).Seconds()) // w.Flows may be infinite
	}
	if !b.Firm() {
		return 0
	}
	return refill.Rate(w.Size, w.Left, w.Reset.Sub(now)) * now.Sub(b.began).Seconds()
}

// add adds one more answer about the same window.
func (b *Belief) add(left, cost float64, refused bool) {
	switch b.last = left; {
	case left < b.least:
		b.least = left
		b.credit, b.vain = max(b.credit, creditShown), false
	case left > b.most:
		b.most = left
	}
	if !refused {
		b.spent += cost
	}
}

func (b *Belief) contradict() { b.credit, b.vain = max(0, b.credit-1), true }
