package learn

import "testing"

// TestTheWayIsKnown: a server whose work varies does not look further off with each
// answer, but one that has moved does in the end.
func TestTheWayIsKnown(t *testing.T) {
	const way, work = Instant(4e6), Instant(100e6)
	var trips trips
	trips.sample(way)
	for range 1000 {
		trips.sample(way + work)
	}
	if trips.least > way+work/16 {
		t.Errorf("after 1000 answers the way takes %v ms, want about %v", trips.least/1e6, way/1e6)
	}
	for range 4 * leastDrifts {
		trips.sample(way + work)
	}
	if trips.least < way+work*9/10 {
		t.Errorf("the server has moved, but the way takes %v ms, want about %v", trips.least/1e6, (way+work)/1e6)
	}
}
