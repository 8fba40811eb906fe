package population

import (
	"testing"
	"time"
)

// TestThePupilIsRefusedUntilItHears holds the plan of a client that its first refusal teaches: three
// calls at once to a bucket of one that is refilled once a second, 50 ms away, whose refusals say one
// second. Two are refused, and go after that second; the all-knowing client loses only the room.
func TestThePupilIsRefusedUntilItHears(t *testing.T) {
	c := Draw(Train, 1, 0)
	c.limiter, _ = bucket(1, 1)
	c.work = func(int) time.Duration { return 0 }
	c.Dialect, c.RTT, c.Jitter = plain()[4], s/10, 0 // Retry-After constant 1
	c.Demand = Demand{Kind: "batch", Calls: 3, Workers: 3, Routes: make([]int, 3)}
	r := c.Taught()
	// Accepted after .05, 1.1 and 2.1 s, and not after .05, 1.05 and 2.05 s.
	if want := 2.15 / 2.1; r.Refused != 2 || r.Time < want-1e-9 || r.Time > want+1e-9 {
		t.Errorf("refused %d in %.4f of the time, want 2 in %.4f", r.Refused, r.Time, want)
	}
}

// TestThePupilIsNoFasterThanTheIdeal holds that knowing late never pays, and that no call of the pupil
// is refused twice. What is left to luck is which call comes last: some are worked on for longer.
func TestThePupilIsNoFasterThanTheIdeal(t *testing.T) {
	taught := 0
	some(100, func(c *Case) {
		r := c.Taught()
		if r.Time < .97 || r.Refused > r.Calls {
			t.Errorf("%s: %v: refused %d of %d in %.4f of the time", c.Replay(), c, r.Refused, r.Calls, r.Time)
		}
		if r.Refused > 0 {
			taught++
		}
	})
	if taught < 50 {
		t.Errorf("only %d of 200 cases teach anything by a refusal", taught)
	}
}
