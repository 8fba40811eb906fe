package attribution

import (
	"math"
	"math/bits"
)

// A descent follows what answers say is left of a limit, in whole units. Of one limit
// each of them takes one: no number comes twice, and the next is one that is still
// missing among those that came, or lies just above or below them, by no more than what
// is under way. What is left of limits of their own may be any number.
//
// Answers overtake one another, so their order tells nothing. The zero descent has heard
// nothing.
type descent struct {
	top  int    // the largest of the last numbers
	seen uint64 // of these: bit i is top-i; zero: there is none
	told float64
	fit  float64 // of those told
	odds float64 // for one limit that counts down so, less 1
}

// fitting is how many numbers of a limit that counts down are expected to fit before any
// was heard, and at most later: it skips one in ten as units flow back.
const fitting = .9

// add takes in one more number, and reports whether it spoke for one limit. What flows back
// ends the descent, and a number far above begins another: a window may have ended.
func (d *descent) add(l Level) (told bool) {
	left, flying := int(l.Left), max(1, int(l.UnderWay))
	below := d.top - left
	if d.seen == 0 || l.Fresh || l.Gained >= 1 || -below > flying {
		d.top, d.seen = left, 1
		return false
	}
	low := 63 - bits.LeadingZeros64(d.seen)
	fits := below < 0 || below <= low+flying && (below > 63 || d.seen>>below&1 == 0)
	// What is under way takes the numbers that are missing, and else those below.
	missing := low + 1 - bits.OnesCount64(d.seen)
	values := max(missing, min(flying, missing+d.top-low))
	own := float64(values) / float64(d.top+1)
	if told = own < 1 && below >= 0; told {
		p := min((d.fit+fitting)/(d.told+1), fitting)
		d.told++
		if fits {
			d.fit++
		} else {
			p, own = min(1-p, 1-own), 1-own // what does not fit never speaks for one limit
		}
		d.odds = min((1+d.odds)*p/own, mostOdds) - 1
	}
	if !fits {
		d.top, d.seen = left, 1
		return false
	}
	if below < 0 {
		d.top, d.seen, below = left, d.seen<<-below, 0
	} else if over := below - 63; over > 0 {
		d.top, d.seen, below = d.top-over, d.seen>>over, 63
	}
	d.seen |= 1 << below
	return told
}

// bits is how much all of them tell for one limit: half of the limits that are shared
// count down otherwise, and of those they tell nothing.
func (d *descent) bits() float64 { return math.Log2(1 + d.odds/2) }
