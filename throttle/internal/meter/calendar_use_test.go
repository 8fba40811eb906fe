package meter

import (
	"testing"
	"time"
)

// What is under way when a window ends counts on both sides.
func TestAlignedWindowsShareWhatIsUnderWay(t *testing.T) {
	c := calendar{clock: wallAt(time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC))}
	s := NewRate(Spec{Limit: 10, Per: 24 * time.Hour, Burst: 10, Align: time.UTC})
	c.take(1, s, 4, true)
	c.take(1, s, 6, false)
	next := Instant(2 * time.Hour)
	if got := c.at(next, s, 7); got <= next {
		t.Error("what was under way at midnight is not counted after it")
	}
	if c.at(next, s, 6) != next {
		t.Error("more than what was under way is counted after midnight")
	}
	c.answered(next, s, 4, 1)
	if c.used != 4 || c.out.sum != 0 {
		t.Errorf("used %d, held %d after the answer, want 4 and 0", c.used, c.out.sum)
	}
}

// TestClockOnTheWallSteps: back, nothing is minted; ahead and back again, the
// quota does not hang in the future.
func TestClockOnTheWallSteps(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := wallAt(noon)
	c := calendar{clock: clock}
	s := NewRate(Spec{Limit: 10, Per: 24 * time.Hour, Burst: 10, Align: time.UTC})
	c.take(1, s, 10, false)
	clock.Set(noon.AddDate(0, 0, -3).UnixNano())
	if c.at(2, s, 1) <= 2 {
		t.Error("a clock that stepped back gave the quota again")
	}
	clock.Set(noon.AddDate(10, 0, 0).UnixNano())
	c.take(3, s, 10, false)
	clock.Set(noon.AddDate(0, 0, 1).UnixNano())
	if wait := c.at(4, s, 1).Until(4); wait > 24*time.Hour {
		t.Errorf("after a step ahead and back the wait is %v, want a day at most", wait)
	}
}

// wallAt is a clock that showed t at instant 0.
func wallAt(t time.Time) *Wall {
	w := new(Wall)
	w.Set(t.UnixNano())
	return w
}
