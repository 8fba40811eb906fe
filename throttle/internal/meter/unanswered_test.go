package meter

import "testing"

// What is young is forgotten in time, answered or not.
func TestYoungUnitsAgeAndAreDropped(t *testing.T) {
	const span = Instant(100)
	var y inTransit
	y.add(10, span, 3)
	y.add(110, span, 2)
	if got := y.count(150, span); got != 5 {
		t.Errorf("%d young, want 5", got)
	}
	y.drop(150, 10, span, 1)
	if got := y.count(150, span); got != 4 {
		t.Errorf("%d young after one answer, want 4", got)
	}
	if got := y.count(200, span); got != 2 {
		t.Errorf("%d young when the first have grown old, want 2", got)
	}
	y.drop(205, 10, span, 2)
	if got := y.count(205, span); got != 2 {
		t.Errorf("%d young after answers to old ones, want 2", got)
	}
	if got := y.count(400, span); got != 0 {
		t.Errorf("%d young in the end, want 0", got)
	}
}

// A span is half of what a bucket takes to fill, or half a second.
func TestSpanIsHalfOfFillingOrHalfASecond(t *testing.T) {
	for size, want := range map[int]Instant{1000: Instant(sec / 2), 11: Instant(sec / 2), 6: Instant(sec / 4), 1: 0} {
		if got := spanOf(10, size); got != want {
			t.Errorf("a bucket of %d: a span of %v", size, got)
		}
	}
}
