package breaker

// This file looks inside: how often chance is taken for collapse shows only in
// millions of calls, which take too long through a Door and a Meter.

import (
	"math/rand/v2"
	"testing"
)

// A host that fails at random keeps its circuit closed: at 100 calls a second
// that make three attempts each, it opens at most so often in a minute.
func TestChanceIsNotTakenForCollapse(t *testing.T) {
	const minutes = 400
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct{ p, opens float64 }{{.05, .01}, {.1, .03}, {.3, .07}, {.5, .25}, {.7, .8}, {.8, 1.5}} {
		opens := 0
		for range minutes {
			var c chance
			run := 0
			for range int(6000 * (1 + x.p + x.p*x.p)) {
				if r.Float64() > x.p {
					c.succeeded()
					run = 0
					continue
				}
				c.failed()
				if run++; c.hopeless(run, 5) {
					opens++
					run = 0
				}
			}
		}
		if got := float64(opens) / minutes; got > x.opens {
			t.Errorf("a host that fails %g of its calls opens its circuit %.3f times a minute, want at most %g", x.p, got, x.opens)
		}
	}
}
