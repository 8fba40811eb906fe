package attribution

import (
	"math"
	"math/bits"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Coin weighs whether a host refuses at random. If it does, each answer is a toss of one
// coin, whatever else is known. If a host has a reason, one of these things predicts the
// next answer:
//
//   - how many requests were under way with this one: the host is overloaded, or limits
//     requests at a time, or limits requests per time and answers take about that time;
//   - when requests were accepted: a limit lets some through, and room comes back with time;
//   - the answer before: a limit that is spent stays spent for a while.
//
// Each of these is an explanation, and predicts each answer from the earlier ones. The
// probabilities that it gave to the real answers, multiplied, are its likelihood. A room predicts
// by when requests were accepted. The others divide answers into classes, such as those to
// requests that were sent with four or five others, and each class has a coin of its own. Before
// its first answer, a class is only presumed to have answers that are nearly all alike. The zero
// Coin has heard nothing.
type Coin struct {
	all    coinTally        // all answers
	before [2]coinTally     // by the answer before: good, bad
	load   [Loads]coinTally // by Load
	room   room
	odds   [2]float64 // for chance, against before and load: natural logarithms
	bad    bool       // the last answer was bad
}

// A tally counts answers of one class.
type tally[N uint16 | float32] struct{ good, bad N }

type coinTally = tally[float32]

const (
	// Loads is the number of Loads. The last one stands for some 256 requests and more.
	Loads = 16
	// recalled is how many answers are remembered. After as many more, a host that has
	// changed is judged by what it does now.
	recalled = 512
	// alike is how many good and how many bad answers each class is presumed to have had
	// before its first. With so few, a class half of whose answers are bad is eleven
	// times less likely than if nothing was presumed. With .1, it takes three times as many
	// answers to recognize chance; with .03, 24 of 91 limiters that say 503 lose calls on
	// train (servers of bench/sim's population), instead of some 20.
	alike = .05
	// alone is how likely a request that was sent alone is refused, if the explanation is
	// how many are under way: other clients may have some.
	alone = .05
	// spent is the part of the answers after a bad one that are bad, and oftener is how many times
	// likelier than after a good one they are; if the answer before is the explanation, it is at
	// least the lesser of the two. Where refusals come sooner than other answers, somewhat more of
	// those after bad ones are bad by chance, too: some 1.4 times as many, and with no such bound a
	// thousand answers speak against chance.
	spent, oftener = .75, 6
	// beyondDoubt is the logarithm of odds of a hundred to one against an explanation.
	// mostSure bounds the odds, so that a hundred answers of a host that has changed
	// outweigh them.
	beyondDoubt = 4.6
	mostSure    = 9.2
	// ofTwo is the logarithm of odds of ten to one, which are enough against the answer
	// before as an explanation. That has only two classes. If nine of ten answers are bad
	// by chance, most are in one of them, and it predicts nearly as well as chance: after
	// 400 answers half of such hosts had not reached a hundred to one. With less than 2,
	// buckets are taken for chance.
	ofTwo = 2.3
	// enough is more answers than come while a limit is being found. In that time requests
	// are sent when the limit may just have room, and are refused as if at random. With
	// 64, the calls of one in four hosts that allow ten requests at a time were lost.
	enough = 100
	// someGood is how many good answers make chance plausible. With only one, and some
	// fifteen probes that fail, everything but chance looks unlikely, because each probe is
	// in a class of its own.
	someGood = 3
)

// next is the probability that the next answer is bad or good, as bad says, if so many of
// each were presumed.
func (t tally[N]) next(bad bool, presumed float64) float64 {
	return likely((float64(t.bad)+presumed)/(float64(t.good+t.bad)+2*presumed), bad)
}

// likely is the probability that an answer is bad or good, as bad says, where that of a bad
// one is p.
func likely(p float64, bad bool) float64 {
	if bad {
		return p
	}
	return 1 - p
}

// weigh adds an answer to the odds of one explanation against another: they gave it these
// probabilities.
func weigh(odds *float64, one, other float64) {
	*odds = max(-mostSure, min(*odds+math.Log(one/other), mostSure))
}

func (t *tally[N]) count(bad bool) {
	if bad {
		t.bad++
	} else {
		t.good++
	}
}

func halve[N uint16 | float32](all []tally[N]) {
	for i := range all {
		all[i].good /= 2
		all[i].bad /= 2
	}
}

// A Load is about how many requests are under way, on a logarithmic scale: 0 is one request,
// and each doubling has two Loads.
type Load uint8

// LoadOf returns the Load of n requests.
func LoadOf(n int) Load {
	if n <= 1 {
		return 0
	}
	octave := bits.Len(uint(n)) - 1
	return Load(min(2*octave-1+n>>(octave-1)&1, Loads-1))
}

// A Tossed is an answer, and what may explain it.
type Tossed struct {
	Bad  bool          // the request was refused
	Sent meter.Instant // when it was sent
	Took time.Duration // until its answer came
	Load Load          // under which it was sent
	Good int           // if it is the first that was refused, how many were accepted before
}

// arrived is about when the host decided: half way of the trip. Answers overtake one another, so
// the order in which requests were sent is not that in which the host saw them.
func (t Tossed) arrived() meter.Instant { return t.Sent.Add(t.Took / 2) }

// Toss learns from an answer.
func (c *Coin) Toss(t Tossed) {
	if !t.Bad && c.all.bad == 0 {
		return // before the first refusal there is nothing to explain
	}
	one := c.all.next(t.Bad, 1)
	before, load := &c.before[class(c.bad)], &c.load[t.Load]
	likeBefore, likeLoad := before.next(t.Bad, alike), load.next(t.Bad, alike)
	if c.bad {
		likeBefore = likely(max(before.next(true, alike), c.stays()), t.Bad)
	}
	if t.Load == 0 {
		likeLoad = likely(alone, t.Bad)
	}
	weigh(&c.odds[0], one, likeBefore)
	weigh(&c.odds[1], one, likeLoad)
	before.count(t.Bad)
	load.count(t.Bad)
	if c.all.bad == 0 {
		c.room.begin(t)
	} else {
		c.room.toss(t, likeLoad)
	}
	c.all.count(t.Bad)
	if c.bad = t.Bad; c.all.good+c.all.bad > recalled {
		c.all.good /= 2
		c.all.bad /= 2
		halve(c.before[:])
		halve(c.load[:])
	}
}

// stays is how likely a bad answer follows a bad one at least, if the answer before explains it.
func (c *Coin) stays() float64 { return min(spent, oftener*c.before[0].next(true, alike)) }

// Timed reports whether room that comes back with time is ten times likelier than anything else.
// While all are refused, that is not sure: the host may have gone down.
func (c *Coin) Timed() bool {
	return !c.bad && max(c.room.odds[0], c.room.odds[1]) < -ofTwo
}

// Leans reports whether room is likelier than anything else.
func (c *Coin) Leans() bool { return max(c.room.odds[0], c.room.odds[1]) < 0 }

// Untimed reports whether chance and outages are likelier. Load does not count: while requests are
// sent as room comes back, only those that are too early are under way with others.
func (c *Coin) Untimed() bool { return c.room.odds[0] > 0 }

// Likelier reports whether chance is likelier than every other explanation, beyond doubt.
func (c *Coin) Likelier() bool {
	return c.odds[0] > ofTwo && min(c.odds[1], c.room.odds[0]) > beyondDoubt
}

// Plausible reports whether chance explains the answers better than the answer before does,
// and far better than the other explanations. If nearly all answers are bad, a few of them
// cannot show more than that.
func (c *Coin) Plausible() bool {
	return c.all.good >= someGood && c.odds[0] > 0 && min(c.odds[1], c.room.odds[0]) > beyondDoubt
}

// Sure reports whether Likelier is true after enough answers.
func (c *Coin) Sure() bool { return c.Likelier() && c.all.good+c.all.bad >= enough }

// Unlikely reports whether another explanation is likelier than chance.
func (c *Coin) Unlikely() bool { return min(c.odds[0], c.odds[1], c.room.odds[0]) < 0 }
