package meter

import (
	"testing"
	"time"
)

// evenScript is a day's quota of 10 that is spent evenly, at noon.
func evenScript(t *testing.T) *script {
	s := newScript(t, "10/d burst 10 align UTC")
	spec := s.m.Spec
	spec.Even = true
	s.m = NewRated(s.now, NewRate(spec), s.clock)
	return s
}

// What is left of a day is spread over what is left of it: the first goes at once,
// and who takes more waits longer.
func TestMeterOfAnEvenDay(t *testing.T) {
	const hour = time.Hour
	s := evenScript(t)
	s.wait(0)
	g := s.take(1)
	s.wait(72 * time.Minute) // 10 in 12 hours
	if got := s.m.State(s.now); got.Units() != 0 || got.Unspent != 9 || got.Limit != 10 {
		t.Errorf("%+v, want none now and 9 unspent", got)
	}
	s.back(g, 1)
	s.wait(0)
	s.take(2)
	s.wait(144 * time.Minute)
	s.at(144 * time.Minute)
	s.wait(0)
	if got := s.m.State(s.now).Units(); got != 1 {
		t.Errorf("%d may go, want 1", got)
	}
	s.at(8 * hour) // who comes late finds more room in less time
	s.wait(0)
	s.take(4)
	s.wait(2 * hour) // 8 in 4 hours
	old := s.take(1)
	s.wait(time.Duration(float64(4*hour) / 4))
	s.back(g, 1) // not the last: its time is over
	s.wait(time.Duration(float64(4*hour) / 5))
	s.back(old, 1)
	s.wait(0)
}

// When nothing is left all wait for midnight, and begin at once then. Estimates
// spread those who are ahead as well.
func TestMeterOfAnEvenDayIsSpent(t *testing.T) {
	const hour = time.Hour
	s := evenScript(t)
	for _, test := range []struct {
		ahead int64
		want  time.Duration
	}{{0, 0}, {1, 72 * time.Minute}, {5, 6 * hour}, {9, 9 * 72 * time.Minute}} {
		if got := s.m.ETA(s.now, test.ahead, 1).Until(s.now); (got - test.want).Abs() > time.Microsecond {
			t.Errorf("after %d others in %v, want %v", test.ahead, got, test.want)
		}
	}
	s.take(10)
	s.wait(12 * hour)
	if got := s.m.ETA(s.now, 3, 1).Until(s.now); got < 12*hour {
		t.Errorf("after 3 others in %v, and nothing is left before midnight", got)
	}
	s.at(12*hour - 1)
	s.wait(1)
	s.at(12 * hour)
	s.wait(0)
	s.take(1)
	s.wait(24 * hour / 10)
}
