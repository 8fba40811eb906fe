package breaker

import (
	"math"
	"testing"
)

// The run that opens a circuit is one in 1e5 attempts for a host that goes on
// as it has lately: short for a host that was well, long for one that fails half.
func TestChanceExpectsRuns(t *testing.T) {
	for _, x := range []struct {
		every int // so many calls to one that succeeds; 0: all fail
		least int
		want  [2]int
	}{
		{1, 5, [2]int{5, 5}},
		{1, 20, [2]int{20, 20}},
		{2, 5, [2]int{15, 19}},
		{5, 20, [2]int{45, 58}},
		{20, 20, [2]int{longest, longest}},
	} {
		var c chance
		for i := range 400 {
			if i%x.every == x.every-1 {
				c.succeeded()
			} else {
				c.failed()
			}
		}
		n := 1
		for !c.hopeless(n, x.least) {
			n++
		}
		if n < x.want[0] || n > x.want[1] {
			t.Errorf("one of %d succeeds: %d in a row are hopeless, want %v", x.every, n, x.want)
		}
		if p := math.Pow(c.bad, float64(c.run)); c.run > x.least && c.run < longest && p > rare {
			t.Errorf("one of %d succeeds: a run of %d has probability %g", x.every, c.run, p)
		}
	}
	var fresh chance
	for range 4 {
		fresh.failed()
	}
	if fresh.hopeless(4, 5) || !fresh.hopeless(5, 5) {
		t.Error("a host that never succeeded has least failures")
	}
}

// What closed the circuit is remembered: a host of which four probes in five
// failed has runs of twenty failures all day.
func TestChanceRemembersProbes(t *testing.T) {
	var c chance
	c.seen(3, 12)
	if c.hopeless(40, 20) || !c.hopeless(longest, 20) {
		t.Errorf("%+v", c)
	}
	if c.seen(3, 1); c.hopeless(40, 20) {
		t.Error("a better vote makes it forget")
	}
}
