package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
)

// How often a limit's word may be contradicted before it is obeyed no more.
const (
	creditShown  = 16 // what is left was seen to fall: a bucket or a sliding window gives some of it back all the time
	creditProved = 4  // times as often after each refusal that bore it out, so that it is tried ever more seldom
	mostCredit   = 64 // a server that has ceased to mean it is believed no longer than that
)

// A belief is how far the word of a quota is taken. Its rule: what could be a
// quota, a limit and a part of it that is left, is obeyed until it is
// contradicted; anything less is not, until it behaves as one. It does if what
// is left falls, or if a refusal comes with nothing left. It does not if an
// accepted request takes nothing from what is left, or if the reset brings
// nothing: then it is contradicted.
//
// The zero belief has heard nothing.
type belief struct {
	credit int  // contradictions that it bears; zero: it is not obeyed
	stake  int  // credit that the last refusal gave it
	heard  bool // of what could be a quota
	vain   bool // contradicted, and nothing has spoken for it since

	// Of the answers that spoke of the same window:
	ends        time.Time // of the window, as first said; zero: nobody said
	began       time.Time // zero: there was none yet
	last        float64   // left, as the last of them said
	least, most float64   // left
	spent       float64   // by those accepted after the first of them
}

// weigh takes an answer for or against the word of q, before it is learned from.
func (q *quota) weigh(now time.Time, l headers.Limit, cost float64, refused, asked bool) {
	left, ok := remaining(l)
	if !ok {
		return
	}
	b := &q.belief
	could := q.could(l, left)
	if could && !b.heard {
		b.heard, b.credit = true, max(b.credit, 1)
	}
	if refused && left < 1 {
		b.stake = min(max(creditProved, creditProved*b.stake), mostCredit)
		b.credit, b.vain = max(b.credit, b.stake), false
	}
	if !q.counted {
		cost = 1 // at least, of something
	}
	reset, hasReset := q.resetAt(now, l)
	held := left < 1 || q.account.Waited()
	switch {
	case asked && !refused:
		if left <= b.last && held { // the reset brought nothing
			b.contradict()
		}
		b.begin(now, left, reset, hasReset)
	case b.began.IsZero() || b.over(now, left, q.sizeOr(0)):
		b.begin(now, left, reset, hasReset)
	default:
		b.add(left, cost, refused)
		if !refused && held && b.spent-(b.most-b.least) > 1-1e-9 && !(q.flows && q.rate() > 0) {
			b.contradict() // what was accepted took nothing
		}
	}
	q.ignored = b.credit == 0
}

// could reports whether a quota could be as an answer says.
func (q *quota) could(l headers.Limit, left float64) bool {
	size := l.Quota
	if !size.Known {
		size = q.size
	}
	return size.Known && size.Value > 0 && left <= size.Value
}

// over reports whether an answer that says left speaks of another window than
// those before it.
func (b *belief) over(now time.Time, left, size float64) bool {
	if left-b.last > max(2, size/4) {
		return true // too much for a trickle
	}
	if b.ends.IsZero() {
		return now.Sub(b.began) > staleAfter
	}
	return !now.Before(b.ends)
}

func (b *belief) begin(now time.Time, left float64, reset time.Time, hasReset bool) {
	b.began, b.last, b.least, b.most, b.spent = now, left, left, left, 0
	b.ends = time.Time{}
	if hasReset {
		b.ends = reset
	}
}

// add takes in one more answer about the window.
func (b *belief) add(left, cost float64, refused bool) {
	if left < b.least {
		b.credit, b.vain = max(b.credit, creditShown), false
	}
	b.last, b.least, b.most = left, min(b.least, left), max(b.most, left)
	if !refused {
		b.spent += cost
	}
}

func (b *belief) contradict() { b.credit, b.vain = max(0, b.credit-1), true }
