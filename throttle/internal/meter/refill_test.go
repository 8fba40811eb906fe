package meter

import "testing"

// Units given by hand are the oldest that were spent, and no more than those: what
// is under way, and what is full, stays as it is.
func TestMeterIsRefilled(t *testing.T) {
	s := newScript(t, "4/10s burst 4")
	s.take(2)
	s.at(sec)
	s.take(1)
	s.m.Refill(s.now, 0)
	s.m.Refill(s.now, -5)
	s.want(1, 10*sec, 0, 9*sec)
	s.m.Refill(s.now, 1)
	s.want(2, 10*sec, 0, 0, 9*sec, 10*sec)
	s.m.Refill(s.now, 1) // the last of the oldest
	s.want(3, 10*sec, 0, 0, 0, 10*sec)
	s.m.Refill(s.now, 100)
	s.want(4, 0, 0, 0, 0, 0)
	s.hold(3)
	s.take(1)
	s.m.Refill(s.now, 100)
	s.want(1, 10*sec, 0, 10*sec)

	s = newScript(t, "2/s bucket 4")
	s.take(4)
	s.m.Refill(s.now, 1)
	s.want(1, 3*sec/2, 0, sec/2)
	s.m.Refill(s.now, 100)
	s.want(4, 0, 0, 0)
	s.m.Refill(s.now, 1)
	s.want(4, 0, 0, 0)
	s.hold(3)
	s.m.Refill(s.now, 100) // nothing flows in as long as the server may not have seen them
	s.want(1, 3*sec/2, 0)

	s = newScript(t, "2/s bucket 4")
	s.take(4)
	s.at(sec)
	s.m.Refill(s.now, 1) // besides the two that have flowed in, of which nobody has asked yet
	s.want(3, sec/2, 0, 0, 0, sec/2)

	s = newScript(t, "2/s warmup 4s")
	s.take(1)
	first := s.m.At(s.now, 1).Until(s.now)
	s.m.Refill(s.now, 1)
	s.wait(first - sec/2) // a unit's time when warm
	s.m.Refill(s.now, 100)
	s.wait(0)
	s.m.Refill(s.now, 100)
	s.wait(0)

	s = newScript(t, "10/d burst 10 align UTC")
	s.take(5)
	s.hold(2)
	s.m.Refill(s.now, 3)
	if got := s.m.State(s.now).Units(); got != 6 {
		t.Errorf("%d left, want 6", got)
	}
	s.m.Refill(s.now, 100)
	if got := s.m.State(s.now).Units(); got != 8 {
		t.Errorf("%d left, want all but the 2 under way", got)
	}
}
