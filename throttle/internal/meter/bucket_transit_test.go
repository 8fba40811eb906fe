package meter

import "testing"

// Units on their way to a server may not have been seen: what would flow in for them
// is lost there. So a bucket fills to its size less those, until they are answered
// or, at most half a second after the next half of one begins, are old.
func TestMeterOfABucketInTransit(t *testing.T) {
	s := newScript(t, "10/s bucket 20")
	g := s.hold(6)
	s.want(14, 6*sec/10, 0)
	s.at(sec / 10)
	s.want(14, 6*sec/10, 0) // one would have flown in
	s.answered(g)
	s.at(2 * sec / 10)
	s.want(15, sec/2, 0)
	s.at(sec)
	s.want(20, 0, 0)

	g = s.hold(6)
	s.at(sec + sec/2 - 10)
	if got := s.m.State(s.now).Units(); got != 14 {
		t.Errorf("%d are left while 6 of 20 are under way, want 14", got)
	}
	s.at(3 * sec) // it has taken longer than a way does
	s.want(20, 0, 0)
	s.answered(g)
	s.want(20, 0, 0)

	s.at(4 * sec)
	g = s.hold(20)
	s.at(4*sec + 1)
	s.back(g, 20) // was not sent
	s.want(20, 0, 0)

	s = newScript(t, "10/s bucket 1") // too small to have any in transit
	s.hold(1)
	s.at(sec / 10)
	s.want(1, 0, 0)
}
