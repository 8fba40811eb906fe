package throttle

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWindowsOfAPlace: windows begin at multiples of Per of the place's clock,
// also on the days on which that is changed.
func TestWindowsOfAPlace(t *testing.T) {
	const day, hour = 24 * time.Hour, time.Hour
	tests := []struct {
		place, at  string // local time; for an hour that comes twice, "2nd" after it
		per        time.Duration
		start, end string // UTC
	}{
		{"America/Los_Angeles", "2026-06-10 13:00", day, "2026-06-10 07:00", "2026-06-11 07:00"},
		{"America/Los_Angeles", "2026-03-08 13:00", day, "2026-03-08 08:00", "2026-03-09 07:00"}, // 23 hours
		{"America/Los_Angeles", "2026-11-01 13:00", day, "2026-11-01 07:00", "2026-11-02 08:00"}, // 25 hours
		{"America/Los_Angeles", "2026-11-01 00:30", day, "2026-11-01 07:00", "2026-11-02 08:00"},
		{"America/Los_Angeles", "2026-03-08 01:30", hour, "2026-03-08 09:00", "2026-03-08 10:00"},
		{"America/Los_Angeles", "2026-03-08 01:30", 2 * hour, "2026-03-08 08:00", "2026-03-08 10:00"}, // 02:00 is jumped over
		{"America/Los_Angeles", "2026-11-01 01:30", hour, "2026-11-01 08:00", "2026-11-01 09:00"},     // the first 01:30
		{"America/Sao_Paulo", "2018-11-04 12:00", day, "2018-11-04 03:00", "2018-11-05 02:00"},        // midnight did not happen
		{"America/Sao_Paulo", "2018-11-03 12:00", day, "2018-11-03 03:00", "2018-11-04 03:00"},
		{"Australia/Lord_Howe", "2026-04-05 12:00", hour, "2026-04-05 01:30", "2026-04-05 02:30"},
		{"Asia/Kathmandu", "2026-01-01 00:10", hour, "2025-12-31 18:15", "2025-12-31 19:15"},
		{"UTC", "2026-07-01 12:00", 7 * day, "2026-06-29 00:00", "2026-07-06 00:00"}, // from Monday
	}
	const layout = "2006-01-02 15:04"
	for _, test := range tests {
		at, err := time.ParseInLocation(layout, test.at, mustZone(t, test.place))
		if err != nil {
			t.Fatal(err)
		}
		start, end := windowStart(at, test.per), windowEnd(at, test.per)
		if s, e := start.UTC().Format(layout), end.UTC().Format(layout); s != test.start || e != test.end {
			t.Errorf("%s in %s, per %v: got %s to %s, want %s to %s", test.at, test.place, test.per, s, e, test.start, test.end)
		}
	}
}

// TestWindowsFollowOneAnother: without a gap, each beginning where the last
// ended, over years of several places.
func TestWindowsFollowOneAnother(t *testing.T) {
	for _, place := range []string{"America/Los_Angeles", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia"} {
		for _, per := range []time.Duration{24 * time.Hour, 12 * time.Hour, 7 * time.Hour, time.Hour} {
			at := time.Date(2011, 1, 1, 0, 0, 0, 0, mustZone(t, place))
			for stop := at.AddDate(8, 0, 0); at.Before(stop); {
				start, end := windowStart(at, per), windowEnd(at, per)
				if start.After(at) || !end.After(at) || end.Sub(start) > per+25*time.Hour {
					t.Fatalf("%s per %v: %v lies in %v to %v", place, per, at, start, end)
				}
				if last := windowStart(end.Add(-1), per); !last.Equal(start) {
					t.Fatalf("%s per %v: %v to %v, but its last instant lies in one from %v", place, per, start, end, last)
				}
				if next := windowStart(end, per); !next.Equal(end) {
					t.Fatalf("%s per %v: after %v to %v comes %v", place, per, start, end, next)
				}
				at = end
			}
		}
	}
}

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
	c.answered(next, s, 4)
	if c.used != 4 || c.held != 0 {
		t.Errorf("used %d, held %d after the answer, want 4 and 0", c.used, c.held)
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
	if wait := c.at(4, s, 1).until(4); wait > 24*time.Hour {
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
