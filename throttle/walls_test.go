package throttle

import (
	"testing"
)

// This looks inside, as no test in virtual time can set the clock on the wall.

// Rates that look at the clock on the wall are counted, whoever's they are.
func TestWallsOfBudgets(t *testing.T) {
	b, err := newBudgets(1, MustParseBudget("5/d align UTC, 1/s"), map[string]Budget{"a": MustParseBudget("5/d align UTC"), "b": MustParseBudget("7/s, 8/m")})
	if err != nil || b.walls() != 2 { // of five
		t.Errorf("%d, %v, want 2", b.walls(), err)
	}
}
