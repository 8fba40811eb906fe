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

// TestWhatWasNotSentIsNoHistory: before a first refusal, too, what was not sent after all
// is taken back, but never more than was sent.
func TestWhatWasNotSentIsNoHistory(t *testing.T) {
	var p past
	p.sent(zero, 3, 2)
	p.sent(zero+10*second, 5, 7)
	p.unsent(zero)
	p.unsent(zero + 11*second)
	if p.n != 2 || p.of[0].n != 2 || p.of[1].n != 4 {
		t.Errorf("%v and %v are left, want 2 and 4", p.of[0].n, p.of[1].n)
	}
	if p.of[0].busy != 1 || p.of[1].busy != 5 {
		t.Errorf("%d and %d were under way, want 1 and 5", p.of[0].busy, p.of[1].busy)
	}
	for range 3 {
		p.unsent(zero)
	}
	p.unsent(zero - second) // of a time that is not known
	if p.of[0].n != 0 || p.of[1].n != 4 {
		t.Errorf("%v and %v are left, want 0 and 4", p.of[0].n, p.of[1].n)
	}
}
