package throttle

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAlignedQuota resets at midnight there, and counts what is under way then
// on both sides.
func TestAlignedQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // 2000-01-01 00:00 UTC is 16:00 of the day before in Los Angeles
		l := newLimiter(t, "10/d burst 10 align America/Los_Angeles")
		if n := burst(t, l, 20); n != 10 {
			t.Fatalf("%d at first, want 10", n)
		}
		d := l.Try("k", nil)
		if d.Allowed || d.RetryAfter != 8*time.Hour || d.Limit != 10 || d.Remaining != 0 {
			t.Errorf("got %+v, want 8h until midnight there", d)
		}
		time.Sleep(8*time.Hour - 1)
		if n := burst(t, l, 20); n != 0 {
			t.Errorf("%d just before midnight, want none", n)
		}
		time.Sleep(time.Nanosecond)
		if n := burst(t, l, 20); n != 10 {
			t.Errorf("%d at midnight, want 10", n)
		}
	})
	c := calendar{clock: &wallClock{zero: time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC).UnixNano()}}
	s := newRateSpec(Rate{Limit: 10, Per: 24 * time.Hour, Burst: 10, Align: time.UTC})
	c.take(1, s, 4, true)
	c.take(1, s, 6, false)
	next := instant(2 * time.Hour)
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
	clock := &wallClock{zero: noon.UnixNano()}
	c := calendar{clock: clock}
	s := newRateSpec(Rate{Limit: 10, Per: 24 * time.Hour, Burst: 10, Align: time.UTC})
	c.take(1, s, 10, false)
	clock.zero = noon.AddDate(0, 0, -3).UnixNano()
	if c.at(2, s, 1) <= 2 {
		t.Error("a clock that stepped back gave the quota again")
	}
	clock.zero = noon.AddDate(10, 0, 0).UnixNano()
	c.take(3, s, 10, false)
	clock.zero = noon.AddDate(0, 0, 1).UnixNano()
	if wait := c.at(4, s, 1).Until(4); wait > 24*time.Hour {
		t.Errorf("after a step ahead and back the wait is %v, want a day at most", wait)
	}
}

// TestWarmUp: the figures of Guava's SmoothWarmingUp.
func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "2/s warmup 4s")
		start := time.Now()
		var at []time.Duration
		for range 12 {
			if _, err := l.Take(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(start))
		}
		// The documented series of Guava's tests for 2 a second, 4 s of warm-up.
		gaps := []float64{1.38, 1.13, 0.88, 0.63, 0.5, 0.5, 0.5, 0.5}
		for i, want := range gaps {
			if got := (at[i+1] - at[i]).Seconds(); got < want-0.006 || got > want+0.006 {
				t.Errorf("gap %d is %.3fs, want %.2fs; all %v", i, got, want, at)
			}
		}
		time.Sleep(time.Minute) // cold again
		first := time.Now()
		for range 2 {
			l.Take(t.Context(), "k", nil)
		}
		if got := time.Since(first).Seconds(); got < 1.37 || got > 1.39 {
			t.Errorf("after idling the first gap is %.3fs, want 1.38s", got)
		}
	})
}
