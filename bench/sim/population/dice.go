package population

import (
	"math"
	"math/rand/v2"
	"time"
)

// dice draw a case.
type dice struct {
	*rand.Rand
	set Set
}

func newDice(set Set, seed uint64, index int) *dice {
	which := uint64(1)
	if set == Test {
		which = 2
	}
	return &dice{rand.New(rand.NewPCG(seed, which<<32|uint64(index))), set}
}

func (d *dice) test() bool            { return d.set == Test }
func (d *dice) chance(p float64) bool { return d.Float64() < p }

// either is a in train, and in test a or b.
func either[T any](d *dice, a, b []T) T {
	if d.test() {
		a = append(a[:len(a):len(a)], b...)
	}
	return a[d.IntN(len(a))]
}

func (d *dice) between(lo, hi float64) float64 { return lo + d.Float64()*(hi-lo) }

// spread is between lo and hi, each order of magnitude as likely.
func (d *dice) spread(lo, hi float64) float64 { return lo * math.Pow(hi/lo, d.Float64()) }

// number is a limit as people set it: round, in test half of the time odd.
func (d *dice) number(lo, hi float64) float64 {
	x := d.spread(lo, hi)
	if d.test() && d.chance(.5) {
		if x > 20 {
			return math.Round(x)
		}
		return math.Round(x*100) / 100
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	best := unit
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if math.Abs(math.Log(m*unit/x)) < math.Abs(math.Log(best/x)) {
			best = m * unit
		}
	}
	return best
}

// count is a number without a fraction.
func (d *dice) count(lo, hi float64) int {
	return max(1, int(math.Round(d.number(max(1, lo), max(1, hi)))))
}

// rate is a server's rate per second.
func (d *dice) rate() (lo, hi float64) {
	if d.test() {
		return .2, 500
	}
	return .5, 200
}

// period is a window's length.
func (d *dice) period() time.Duration {
	return either(d,
		[]time.Duration{1e9, 1e9, 2e9, 5e9, 10e9, 10e9, 15e9, 30e9, 60e9, 60e9, 60e9, 300e9, 900e9},
		[]time.Duration{3e9, 4e9, 7e9, 8e9, 12e9, 20e9, 25e9, 45e9, 90e9, 120e9, 600e9, 3600e9})
}

// some is a random time below d.
func (d *dice) some(t time.Duration) time.Duration { return time.Duration(d.Int64N(int64(t))) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
