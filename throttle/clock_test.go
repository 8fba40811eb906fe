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
