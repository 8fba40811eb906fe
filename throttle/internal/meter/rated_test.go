package meter

import (
	"math"
	"testing"
	"time"
)

// A bucket gives what has flowed in, and a cost above its size when it is full.
func TestMeterOfABucket(t *testing.T) {
	s := newScript(t, "2/s bucket 4")
	s.want(4, 0, 0, 0, 0, 0, 0, 0)
	s.take(4)
	s.want(0, 2*sec, sec/2, sec, 3*sec/2, 2*sec, 2*sec)
	s.at(sec / 4)
	s.want(0.5, 7*sec/4, sec/4, 3*sec/4, 5*sec/4, 7*sec/4, 7*sec/4)
	s.at(2 * sec)
	s.want(4, 0, 0, 0, 0, 0, 0)
	s.take(6) // 2 owed
	s.want(0, 3*sec, 3*sec/2, 2*sec, 5*sec/2, 3*sec)
	s.at(10 * sec)
	s.want(4, 0)
	g := s.take(3)
	s.at(11 * sec)
	s.want(3, sec/2, 0, 0, 0, sec/2)
	s.back(g, 3) // two of them have flowed off
	s.want(4, 0)
	s.at(20 * sec)
	g = s.take(2)
	s.at(21 * sec)
	s.take(4)
	s.back(g, 2) // all of it has flowed off
	s.want(0, 2*sec, sec/2)
	s.at(30 * sec)
	g = s.take(4)
	s.at(31 * sec)
	s.back(g, 1)
	s.want(3, sec/2)
	for range 4 { // whatever is asked first, a second has passed
		s.at(time.Duration(s.now-1) + 10*sec)
		s.take(4)
		s.at(time.Duration(s.now-1) + sec)
		s.want(2, sec, 0, 0, sec/2)
	}
	for range 4 {
		s.at(time.Duration(s.now-1) + 10*sec)
		s.take(4)
		s.at(time.Duration(s.now-1) + 10*sec)
		s.want(4, 0, 0, 0, 0, 0)
	}
	if v := newScript(t, "5/s bucket 1").m.State(1); v.Limit != 1 {
		t.Errorf("%d at once of a bucket of 1", v.Limit)
	}
	if s.m.State(1).Most != math.MaxInt64 || newScript(t, "4/s").m.State(1).Most != 4 {
		t.Error("any cost fits a bucket some time, and up to Limit a window")
	}
}

// What flows in piece by piece is as much as what flows in at once.
func TestMeterOfABucketLosesNothing(t *testing.T) {
	s := newScript(t, "1/d bucket 1")
	day := 24 * time.Hour
	for n := 1; n <= 64; n++ {
		if day%time.Duration(n) != 0 {
			continue
		}
		s.take(1)
		from := time.Duration(s.now - 1)
		for i := range n {
			s.at(from + day/time.Duration(n)*time.Duration(i+1))
			s.m.State(s.now)
		}
		s.wait(0)
	}
}

// A rate with a burst is a bucket and a window, and both must have room.
func TestMeterOfABurst(t *testing.T) {
	s := newScript(t, "4/4s burst 2")
	s.want(2, 0, 0, 0, 0, 0)
	s.take(2)
	s.want(0, 4*sec, sec, 2*sec, 4*sec, 4*sec)
	s.at(2 * sec)
	s.want(2, 2*sec, 0, 0, 2*sec, 2*sec)
	s.take(2)
	s.want(0, 4*sec, 2*sec, 2*sec, 4*sec, 4*sec)
	s.at(4 * sec)
	s.want(2, 2*sec, 0, 0, 2*sec, 2*sec)
	s.at(6 * sec)
	s.want(2, 0, 0, 0, 0, 0)
	g := s.hold(2)
	s.back(g, 2)
	s.want(2, 0, 0, 0, 0, 0)
}

// While a rate warms up, each unit is quicker than the one before, until it is warm.
func TestUnitsGetQuickerAsARateWarmsUp(t *testing.T) {
	s := newScript(t, "2/s warmup 4s")
	at := time.Duration(0)
	for i, want := range []time.Duration{1375, 1125, 875, 625, 500, 500} {
		s.take(1)
		if got := s.m.At(s.now, 1).Until(s.now); got != want*time.Millisecond {
			t.Errorf("unit %d takes %v, want %v", i+1, got, want*time.Millisecond)
		}
		at += want * time.Millisecond
		s.at(at)
	}
}

// A rate that warms up grants one unit after the other.
func TestMeterThatWarmsUp(t *testing.T) {
	s := newScript(t, "2/s warmup 4s")
	full := func(want bool) {
		t.Helper()
		if got := s.m.State(s.now).Idle; got != want {
			t.Errorf("at %v: full is %t", time.Duration(s.now-1), got)
		}
	}
	full(true)
	if n := s.m.State(s.now).Units(); n != 1 {
		t.Errorf("room for %d in a cold one, want 1", n)
	}
	g := s.take(1)
	full(false)
	s.wait(1375*time.Millisecond, 1375*time.Millisecond)
	if n := s.m.State(s.now).Units(); n != 0 {
		t.Errorf("room for %d just after, want none", n)
	}
	if got, want := s.m.ETA(s.now, 2, 1).Until(s.now), 2375*time.Millisecond; got != want {
		t.Errorf("after two others in %v, want %v", got, want)
	}
	s.at(sec)
	s.back(g, 1) // what is left of its time
	s.wait(0, 0)
	if n := s.m.State(s.now).Units(); n != 1 {
		t.Errorf("room for %d after it came back, want 1", n)
	}
	g = s.take(1)
	s.wait(1125*time.Millisecond, 1125*time.Millisecond)
	s.at(sec + 1125*time.Millisecond)
	s.back(g, 1) // too late
	s.wait(0, 0)
	if n := s.m.State(s.now).Units(); n != 1 {
		t.Errorf("room for %d when its time is up, want 1", n)
	}
	full(false)
	s.at(time.Minute)
	full(true)
}
