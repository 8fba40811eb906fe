package learn

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A border of a long window is not taken to come by luck right after a short pause: a server that
// shuts out for its window's length, and says so, has that window.
func TestNoBorderOfALongWindowComesByLuck(t *testing.T) {
	for _, per := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute} {
		for _, f := range []family{windowFirst, slidingLog} {
			for _, size := range []float64{50, 240, 900} {
				g := newGame(1, size, 180*time.Millisecond, 8)
				g.limit, g.hint = shape{family: f, per: Instant(per), ban: Instant(per)}, waits(per)
				g.play(zero + Instant(2*per+per/4))
				if x, ok := g.l.Leader(); ok && x.Per > 2*per { // twice as long explains as much
					t.Errorf("%v per %v: it %s, after %d refusals", size, per, g.l.Words(), g.refused)
				}
			}
		}
	}
}

// TestLimitsOfOddPeriodsAndRatesAreLearnt: after some minutes a limit is used nearly in full, even if
// nobody would guess its period or rate, and a constant Retry-After hides when it has room again.
func TestLimitsOfOddPeriodsAndRatesAreLearnt(t *testing.T) {
	const seeds = 8 // one in ten takes a limit for another for a while
	for _, c := range []struct {
		limit shape
		size  float64
		says  Refusal
	}{
		{shape{family: windowFirst, per: 4 * second}, 9, waits(time.Second)},
		{shape{family: windowFirst, per: 26 * second}, 12, Refusal{}},
		{shape{family: windowFirst, per: 22 * second}, 7, Refusal{}},
		{shape{family: slidingLog, per: 19 * second}, 12, Refusal{}},
		{shape{family: slidingLog, per: 33 * second / 10}, 9, waits(time.Second)},
		{shape{family: bucket, per: second / 7}, 3, waits(time.Second)},
		{shape{family: bucket, per: second / 13}, 3, waits(time.Second)},
		{shape{family: bucket, per: second * 10 / 34}, 5, waits(2 * time.Second)},
	} {
		served, rate := 0, c.limit.rate(c.size)
		for seed := range uint64(seeds) {
			g := newGame(rate, c.size, 20*time.Millisecond, 100)
			g.limit, g.hint, g.r = c.limit, c.says, rand.New(rand.NewPCG(seed, 29))
			known := zero + 300*second
			g.play(known)
			g.play(known + 600*second)
			served += g.since(known)
		}
		if most := seeds * 600 * rate; float64(served) < .88*most {
			t.Errorf("%v per %v, of kind %d, says %v: %d of %.0f are served", c.size, time.Duration(c.limit.per), c.limit.family, c.says.Hint.Wait, served, most)
		}
	}
}

// However often a limiter is tuned towards a shorter period, or a higher rate, it has a period.
func TestATunedLimiterKeepsAPeriod(t *testing.T) {
	for f := bucket; f <= counter; f++ {
		c := candidate{shape: shape{family: f, per: 1e8, phase: 3e7}}
		for i := range 1000 {
			if c = c.near(7./8, 1./32, zero); c.family == bucket {
				c = c.near(8./7*8/7, 1./32, zero)
			}
			if c.per < 1 || c.phase < 0 {
				t.Fatalf("after %d steps: %+v", i, c.shape)
			}
		}
	}
}
