package breaker_test

import (
	"testing"

	"github.com/weirhttp/weir/breaker"
)

// The run that opens a circuit is one in 1e5 attempts for a host that goes on
// as it has lately: short for a host that was well, long for one that fails half.
func TestChanceExpectsRuns(t *testing.T) {
	const longest = 60
	for _, x := range []struct {
		every int // so many calls to one that succeeds; 0: all fail
		least int
		want  [2]int
	}{
		{1, 5, [2]int{5, 5}},
		{1, 20, [2]int{20, 20}},
		{2, 5, [2]int{21, 27}},
		{5, 20, [2]int{54, longest}},
		{20, 20, [2]int{longest, longest}},
	} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{})
			for i := range 400 {
				if h.set(status(500)); i%x.every == x.every-1 {
					h.set(status(200))
				}
				get(rt, site)
			}
			want(t, cs, breaker.Closed, "so far")
			if h.set(status(500)); x.least == 5 {
				h.set(down)
			}
			n := 0
			for cs.State("a.example") == breaker.Closed {
				get(rt, site)
				n++
			}
			if n < x.want[0] || n > x.want[1] {
				t.Errorf("one of %d succeeds: %d in a row are hopeless, want %v", x.every, n, x.want)
			}
		})
	}
}

// What closed the circuit is remembered: a host of which four probes in five
// failed has runs of twenty failures all day. A better vote does not make it
// forget how the host was before.
func TestChanceRemembersProbes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		vote := func(script string) {
			t.Helper()
			for _, letter := range script {
				if h.plays(t, cs, letter) {
					get(rt, site)
				}
			}
			want(t, cs, breaker.Closed, script)
		}
		for _, script := range []string{"gbbbbbbgbbbbbbg", "gbgg"} {
			vote(script)
			h.set(status(500))
			for range 40 {
				get(rt, site)
			}
			want(t, cs, breaker.Closed, script+" and 40 failures")
			for range 20 {
				get(rt, site)
			}
			want(t, cs, breaker.Open, script+" and 60 failures")
			due(t, cs)
		}
	})
}
