package learn

import (
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
