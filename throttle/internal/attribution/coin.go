package attribution

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Coin weighs whether a host refuses at random: then each answer is a toss of one
// coin, whatever else is known. Of a host that has a reason, something tells how the
// next answer will be:
//
//   - how many were under way with the request: a host is overloaded, or has a limit of
//     requests at a time, or one of requests per time where as many answers take as long;
//   - the time since one was sent that was accepted: room comes back with time;
//   - the answer before: what is spent stays so for a while.
//
// So each of these is an explanation in which answers of one kind, such as those to what
// was sent with four or five others, have a coin of their own. The explanations predict
// each answer from those before, and whose predictions come true gains: that is the
// likelihood of all answers so far. Hardly anything is presumed of a kind but that its
// answers are rather all alike. The zero Coin has heard nothing.
type Coin struct {
	all    tally
	before [2]tally
	load   [Loads]tally
	gap    [gaps]tally
	odds   [3]float64    // for chance against each of them: a natural logarithm
	bad    bool          // the answer before
	good   meter.Instant // when the last one was sent that was accepted
}

// A tally counts answers of one kind.
type tally struct{ good, bad float32 }

const (
	// Loads is how many there are: up to 256 requests.
	Loads = 16
	gaps  = 24 // times of a millisecond and more, each twice the one before: up to an hour
	// recalled is how many answers are recalled. After as many more a host that has
	// changed is judged by what it does now.
	recalled = 512
	// alike is how many good and how many bad answers each kind is presumed to have
	// had, in an explanation by kinds: with so few, a kind of which half are bad is eleven
	// times less likely than if nothing was presumed. With a tenth, chance takes three
	// times as many answers to be known; with .03, 24 of 91 limiters that say 503 lose
	// calls on train in the place of some 20.
	alike = .05
	// alone is how likely what was sent alone is refused, if the reason is how many were
	// under way: others may have been, of somebody else.
	alone = .05
	// beyondDoubt are odds of a hundred to one against an explanation, and mostSure
	// those that a hundred answers of a host that has changed outweigh.
	beyondDoubt = 4.6
	mostSure    = 9.2
	// ofTwo are odds of ten to one: so much is asked against the answer before. That has
	// two kinds only, and if nine of ten answers are bad by chance, they are so of either:
	// then it predicts nearly as well, and after 400 answers half of such hosts were not
	// known at a hundred to one. With less than 2, buckets are taken for chance.
	ofTwo = 2.3
	// enough is more answers than come while a limit is found. Then requests are sent
	// when it may just have room, and are refused as if at random. With 64, the calls of
	// one in four hosts that refuse what is beyond ten at a time were lost.
	enough = 100
	// someGood good answers make chance plausible. With one, and some fifteen probes that
	// fail, everything but chance looks unlikely: each of them is of a kind of its own.
	someGood = 3
)

// next is how likely the next answer is as bad says, if so many of either were presumed.
func (t tally) next(bad bool, presumed float64) float64 {
	return likely((float64(t.bad)+presumed)/(float64(t.good+t.bad)+2*presumed), bad)
}

// likely is how likely an answer is as bad says, if p of them are bad.
func likely(p float64, bad bool) float64 {
	if bad {
		return p
	}
	return 1 - p
}

func (t *tally) count(bad bool) {
	if bad {
		t.bad++
	} else {
		t.good++
	}
}

func halve(all []tally) {
	for i := range all {
		all[i].good /= 2
		all[i].bad /= 2
	}
}

// A Load is about how many are under way: zero is one alone, and two of them are for
// each twofold.
type Load uint8

// LoadOf is that of so many.
func LoadOf(n int) Load {
	if n <= 1 {
		return 0
	}
	octave := bits.Len(uint(n)) - 1
	return Load(min(2*octave-1+n>>(octave-1)&1, Loads-1))
}

// gapOf is the kind of so long a time.
func gapOf(d time.Duration) int {
	return min(bits.Len64(uint64(max(0, d)/time.Millisecond)), gaps-1)
}

// Toss takes in an answer to a request sent at sent under that load.
func (c *Coin) Toss(sent meter.Instant, load Load, bad bool) {
	if !bad && c.all.bad == 0 {
		c.good = max(c.good, sent)
		return // it has not begun to refuse
	}
	one := c.all.next(bad, 1)
	kinds := [...]*tally{&c.before[0], &c.load[load], &c.gap[0]}
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

// Likelier reports whether chance is likelier than all else, beyond doubt.
func (c *Coin) Likelier() bool {
	return c.odds[0] > ofTwo && min(c.odds[1], c.odds[2]) > beyondDoubt
}

// Plausible reports whether chance explains the answers at least as well as the answer
// before does, and far better than all else. That is as much as few answers tell that are
// nearly all bad.
func (c *Coin) Plausible() bool {
	return c.all.good >= someGood && c.odds[0] > 0 && min(c.odds[1], c.odds[2]) > beyondDoubt
}

// Sure reports whether that is so by many answers.
func (c *Coin) Sure() bool { return c.Likelier() && c.all.good+c.all.bad >= enough }

// Unlikely reports whether something else is likelier.
func (c *Coin) Unlikely() bool { return slices.Min(c.odds[:]) < 0 }
