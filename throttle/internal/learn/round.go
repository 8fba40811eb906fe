package learn

import (
	"math"
	"time"
)

// odd is how much less likely a number is than a round one, as a logarithm, because people
// who write limits prefer round numbers. The costs are guesses. They decide between sizes and
// rates that explain the log equally well.
func odd(x float64) float64 {
	if x <= 0 {
		return 8
	}
	m := x / decade(x) // in [1, 10)
	if tenths := int(10*m + .5); math.Abs(m-float64(tenths)/10) < 1e-6 {
		switch tenths {
		case 10:
			return 0
		case 20, 50:
			return .3
		case 30:
			return .7
		case 40, 60, 15, 25:
			return .9
		case 80:
			return 1.1
		case 12:
			return 1.3
		case 70, 90:
			return 1.5
		case 75:
			return 1.6
		}
	}
	switch {
	case whole(m * 2):
		return 1.8
	case whole(m * 10):
		return 2.2
	case whole(m * 20):
		return 2.8
	case whole(m * 100):
		return 3.4
	}
	return 4
}

func whole(x float64) bool { return math.Abs(x-math.Round(x)) < 1e-6 }

// decade is the largest power of ten that is no more than x, which may be a little less than one by
// an error of rounding. By logarithms it took a third of the time of a search.
func decade(x float64) float64 {
	x *= 1 + 2e-9
	unit := 1.0
	for ; x >= 10*unit && unit < 1e300; unit *= 10 {
	}
	for ; x < unit; unit /= 10 {
	}
	return unit
}

// roundest is the number in [lo, hi] that is the least odd.
func roundest(lo, hi float64) float64 {
	if hi <= lo {
		return lo
	}
	best, cost := (lo+hi)/2, 9.0
	unit := decade(hi)
	if unit < hi {
		unit *= 10
	}
	for range 5 {
		for i, step := range [...]float64{unit, unit / 2, unit / 4} {
			n := math.Ceil(lo/step - 1e-9)
			for k := 0; k < 12 && n*step <= hi*(1+1e-9); k++ {
				if n > 0 && (i == 0 || int(n)%2 != 0) { // the even ones are multiples of the step before, too
					if c := odd(n * step); c < cost {
						if best, cost = n*step, c; c == 0 {
							return best
						}
					}
				}
				n++
			}
		}
		if cost < 1 {
			break
		}
		unit /= 10
	}
	return best
}

// roundestCount is roundest among whole numbers; 0: there is none.
func roundestCount(lo, hi float64) float64 {
	lo, hi = math.Ceil(lo-1e-6), math.Floor(hi+1e-6)
	if lo < 1 {
		lo = 1
	}
	if hi < lo {
		return 0
	}
	best, cost := lo, odd(lo)
	if r := math.Round(roundest(lo, hi)); r >= lo && r <= hi && odd(r) <= cost {
		best, cost = r, odd(r)
	}
	if c := odd(hi); c < cost {
		best = hi
	}
	return best
}

// A usualPeriod is one that people write, and how rare it is, as a logarithm.
type usualPeriod struct {
	per  time.Duration
	cost float64
}

// usual are the periods that most limits have, and how much rarer each is, as a logarithm.
var usual = [...]usualPeriod{
	{time.Second, 0}, {2 * time.Second, .8}, {5 * time.Second, .8}, {10 * time.Second, .3}, {15 * time.Second, 1}, {30 * time.Second, .8},
	{time.Minute, 0}, {5 * time.Minute, .8}, {10 * time.Minute, .9}, {15 * time.Minute, .8}, {time.Hour, .4},
}

// oddPeriod is odd for a period.
func oddPeriod(p Instant) float64 {
	for _, u := range usual {
		if Instant(u.per) == p {
			return u.cost
		}
	}
	s := float64(p) / 1e9
	switch {
	case whole(s / 60):
		return 1.2 + .5*odd(s/60)
	case whole(s):
		return 1.5 + .5*odd(s)
	}
	return 2.5 + .5*odd(s)
}
