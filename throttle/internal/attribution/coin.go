package attribution

import "math"

// A Coin finds out whether refusals depend on what was sent. Those of a host
// that fails at random do not: between two good answers lies, as with coins, any
// number of bad ones, and their variance is m(m+1), where m is their mean. A rate
// limit refuses until there is room again: with requests that follow one another
// at an even pace, those of a bucket are all but the same in number, and those of a
// window are none for a long time and then very many. A host that is down refuses
// all, and has no number.
//
// It is tossed while few requests are under way, so that answers come in the order
// in which they were decided, and so that there are not too many at a time. The zero
// Coin was never tossed.
type Coin struct {
	run          int // bad answers since the last good one
	gaps         int // good answers but the first
	pairs        int // of these, without a bad one in between
	begun        bool
	sum, squares float64 // of the runs between them
}

const (
	// tosses is how many runs make a verdict. With 16, the variance is below regular
	// times what it should be for 3 coins in 100, and above clumped times for one in
	// 200, whatever their bias. For buckets it is below .1, and no more than .36 if
	// three of the runs are of the time before the bucket was empty. A verdict
	// takes 80 answers of a host that refuses four of five.
	tosses  = 16
	regular = .4
	clumped = 2.5
	// even is the least mean. Fewer bad answers than good ones are as regular as a
	// bucket's whatever they come from: most runs are 0 or 1.
	even = 1.
	// apart is how many standard deviations more good answers than a coin's may
	// follow one another. Those of small windows do.
	apart = 3.
)

// Toss takes in one more answer. It reports whether the last runs were chance.
func (c *Coin) Toss(bad bool) (chance bool) {
	if bad {
		c.run++
		return false
	}
	if !c.begun && c.run == 0 {
		return false // it has not begun to refuse
	}
	if c.begun {
		c.gaps++
		c.sum += float64(c.run)
		c.squares += float64(c.run) * float64(c.run)
		if c.run == 0 {
			c.pairs++
		}
	}
	c.begun, c.run = true, 0
	if c.gaps < tosses {
		return false
	}
	chance = c.chance()
	*c = Coin{begun: true}
	return chance
}

func (c *Coin) chance() bool {
	const n = tosses
	mean := c.sum / n
	part := (c.squares - n*mean*mean) / (n - 1) / (mean * (mean + 1))
	pairs := n / (mean + 1)
	return mean >= even && part > regular && part < clumped && float64(c.pairs) <= pairs+apart*math.Sqrt(pairs*mean/(mean+1))
}
