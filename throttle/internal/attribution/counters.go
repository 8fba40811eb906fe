package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Where each of several servers behind a balancer counts for itself, each states its own count by the
// same name. What they have left in all is not known, nor which of them is next. One counter, of
// whatever kind, counts each request that it accepts, and does not forget it before its reset; if it
// is a bucket, it forgets no more than flows back. So when all that were accepted after some answer
// left more than that, several counters were asked. Others who use a counter leave less, and never
// more. Nor do answers that overtake one another: those are compared whose requests were sent after
// the first answer was heard, and of these the least that was left.

const (
	// severalAt is at how many votes there are several counters. A contradiction has as many as
	// the part of the limit that was left when it was taken to be spent, so it takes two at
	// least. With two votes, a tenth to a half less was gained on train.
	severalAt = 1
	// votesOfOne is how many votes a comparison takes away that fits one counter. Chance makes up
	// to half of them fit two counters of which little is used.
	votesOfOne = .5
	// fitsOne is how many comparisons in a row have to fit one counter until there is one again.
	// So many are chance once in a thousand times.
	fitsOne = 10
	// roundedBy is by how much longer than it is a time may be stated in whole seconds. The end of a
	// window may be twice as much too late: it is the difference of two times.
	roundedBy = time.Second
	// surely is how long a window lasts at least whose end is stated to be more than roundedBy away. Only a
	// bucket that fills sooner may be taken for several counters, and nobody waits for that for long.
	// With a quarter of a second, a sixth less was gained on train; with a second, and no allowance
	// for twice roundedBy, a third more, and one in 250 single counters was taken for several.
	surely = 400 * time.Millisecond
)

// A Counters finds out whether one counter can have stated what answers say, or several were asked. It
// compares answers with one before them, to requests that are alike. The zero Counters has heard
// nothing.
type Counters struct {
	votes   float64 // for several
	several bool
	fits    int // comparisons in a row that fitted one counter, since there are several

	// The answer with which others are compared:
	like        any           // what its request has in common with theirs
	sent, heard meter.Instant // heard zero: there is none
	until       meter.Instant // what was counted since is not forgotten before
	left        float64
	back        float64 // units that may come back until then that were counted before
	rate        float64 // units per second that come back if it is of a bucket
	// Of the others:
	spent, least float64 // units of those that were accepted, and the least that was left after one
}

// Several reports whether there are several counters.
func (c *Counters) Several() bool { return c.several }

// Adds notes an answer to a request that was accepted, as Weigh does, where it is no evidence. Requests
// are compared if like is the same.
func (c *Counters) Adds(now, sent meter.Instant, like any, left, cost float64) {
	if now < c.until && sent >= c.heard && like == c.like {
		c.spent += cost
		c.least = min(c.least, left)
	}
}

// Weigh learns from an answer to a request that was sent at sent. w.Holds says that requests wait
// because the limit is taken to be spent: where nobody does, it is of no use to know. window and rate
// are those of the limit, as the server stated them; zero: it did not.
func (c *Counters) Weigh(now, sent meter.Instant, like any, w Word, window time.Duration, rate float64) {
	switch {
	case w.Refused:
		return
	case now < c.until:
		if c.Adds(now, sent, like, w.Left, w.Cost); !c.contradicts(now) {
			return
		}
		c.vote(&w)
	case c.spent > 0:
		c.voteForOne()
	}
	c.begin(now, sent, like, &w, window, rate)
}

// contradicts reports that more is left than one counter would have.
func (c *Counters) contradicts(now meter.Instant) bool {
	return c.spent-(c.left-c.least)-max(c.back, c.rate*now.Sub(c.sent).Seconds()) > wholeUnit
}

// wholeUnit is the least difference that counts, as what is left is stated in whole units.
const wholeUnit = .5

func (c *Counters) vote(w *Word) {
	c.fits = 0
	if w.Holds && w.Left >= 1 && !c.several {
		c.votes += w.Left / w.Size
		c.several = c.votes >= severalAt
	}
}

func (c *Counters) voteForOne() {
	c.votes = max(0, c.votes-votesOfOne)
	if c.fits++; c.fits >= fitsOne {
		c.several = false
	}
}

// begin has later answers compared with this one, if it says how long they can be.
func (c *Counters) begin(now, sent meter.Instant, like any, w *Word, window time.Duration, rate float64) {
	*c = Counters{votes: c.votes, several: c.several, fits: c.fits}
	lasts, used := w.Reset.Sub(now), w.Size-w.Left
	lasts = max(lasts-2*roundedBy, min(lasts-roundedBy, surely))
	if w.Reset == 0 || lasts <= 0 || !w.Quota || w.Cost <= 0 || used < w.Cost {
		return
	}
	switch {
	case window > roundedBy:
		rate = max(rate, w.Size/(window-roundedBy).Seconds())
	case window > 0:
		return // a bucket may fill at once, for all that is known
	case lasts > surely:
		rate = max(rate, used/lasts.Seconds()) // it is full at its reset
	default:
		rate = max(rate, w.Size/surely.Seconds())
	}
	c.like, c.sent, c.heard, c.until = like, sent, now, sent.Add(lasts)
	c.left, c.least, c.rate = w.Left, w.Left, rate
	if used > w.Cost {
		c.back = used - w.Cost + 1 // what was left is rounded down
	}
}
