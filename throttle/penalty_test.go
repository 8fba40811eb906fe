package throttle

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPenaltyEndsOnTheSecond: a pause over an idle key tells its length and no
// nanosecond more.
func TestPenaltyEndsOnTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, budget := range []string{"3/h", "5/m", "5/m burst 5", "5/m align UTC", "5/m align UTC, 3/h", "60/m bucket 5", "7/11s"} {
			l := newLimiter(t, budget)
			end := time.Now().Add(time.Minute)
			l.Pause("k", end)
			for _, nap := range []time.Duration{0, 5 * time.Second, 54 * time.Second} {
				time.Sleep(nap)
				if got, want := l.Try("k", nil).RetryAfter, time.Until(end); got != want {
					t.Errorf("%s: retry after %v, want %v", budget, got, want)
				}
			}
			time.Sleep(time.Until(end))
			if !l.Try("k", nil).Allowed {
				t.Errorf("%s: still paused", budget)
			}
		}
	})
}
