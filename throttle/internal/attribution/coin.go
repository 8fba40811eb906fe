package attribution

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Coin weighs whether a host refuses at random. If it does, each answer is a toss of one
// coin, whatever else is known. If a host has a reason, one of these things predicts the
// next answer:
//
//   - how many requests were under way with this one: the host is overloaded, or limits
//     requests at a time, or limits requests per time and answers take about that time;
//   - the time since an accepted request was sent: room comes back with time;
//   - the answer before: a limit that is spent stays spent for a while.
//
// Each of these is an explanation. It divides answers into classes, such as those to requests
// that were sent with four or five others, and each class has a coin of its own. Each
// explanation predicts each answer from the earlier answers of its class. The probabilities
// that it gave to the real answers, multiplied, are its likelihood. Before its first answer, a
// class is only presumed to have answers that are nearly all alike. The zero Coin has heard
// nothing.
type Coin struct {
	all    coinTally        // all answers
	before [2]coinTally     // by the answer before: good, bad
	load   [Loads]coinTally // by Load
	gap    [gaps]coinTally  // by gapOf the time since good
	odds   [3]float64       // for chance, against before, load and gap: natural logarithms
	bad    bool             // the last answer was bad
	good   meter.Instant    // when the last request was sent that was accepted; zero: none was
}

// A tally counts answers of one class.
type tally[N uint16 | float32] struct{ good, bad N }

type coinTally = tally[float32]

const (
	// Loads is the number of Loads. The last one stands for some 256 requests and more.
	Loads = 16
	// gaps is the number of classes of times: up to a millisecond, and each later one up to
	// twice the one before. The last one begins at more than an hour.
	gaps = 24
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

// gapOf is the class of a time.
func gapOf(d time.Duration) int {
	return min(bits.Len64(uint64(max(0, d)/time.Millisecond)), gaps-1)
}

// Toss learns from an answer to a request that was sent at sent, under that load. bad says
// that it was refused.
func (c *Coin) Toss(sent meter.Instant, load Load, bad bool) {
	if !bad && c.all.bad == 0 {
		c.good = max(c.good, sent)
		return // before the first refusal there is nothing to explain
	}
	one := c.all.next(bad, 1)
	kinds := [...]*coinTally{&c.before[0], &c.load[load], &c.gap[0]}
	if c.bad {
		kinds[0] = &c.before[1]
	}
	if c.good != 0 {
		kinds[2] = &c.gap[gapOf(sent.Sub(c.good))]
	}
	for i, k := range kinds {
		p := k.next(bad, alike)
		if i == 1 && load == 0 {
			p = likely(alone, bad)
		}
		c.odds[i] = max(-mostSure, min(c.odds[i]+math.Log(one/p), mostSure))
		k.count(bad)
	}
	c.all.count(bad)
	if c.bad = bad; !bad {
		c.good = max(c.good, sent)
	}
	if c.all.good+c.all.bad > recalled {
		c.all.good /= 2
		c.all.bad /= 2
		halve(c.before[:])
		halve(c.load[:])
		halve(c.gap[:])
	}
}

// Likelier reports whether chance is likelier than every other explanation, beyond doubt.
func (c *Coin) Likelier() bool {
	return c.odds[0] > ofTwo && min(c.odds[1], c.odds[2]) > beyondDoubt
}

// Plausible reports whether chance explains the answers better than the answer before does,
// and far better than the other explanations. If nearly all answers are bad, a few of them
// cannot show more than that.
func (c *Coin) Plausible() bool {
	return c.all.good >= someGood && c.odds[0] > 0 && min(c.odds[1], c.odds[2]) > beyondDoubt
}

// Sure reports whether Likelier is true after enough answers.
func (c *Coin) Sure() bool { return c.Likelier() && c.all.good+c.all.bad >= enough }

// Unlikely reports whether another explanation is likelier than chance.
func (c *Coin) Unlikely() bool { return slices.Min(c.odds[:]) < 0 }
