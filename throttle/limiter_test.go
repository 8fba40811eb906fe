package throttle_test

import (
	"context"
	"errors"
	"github.com/weirhttp/weir/throttle"
	"testing"
	"testing/synctest"
	"time"
)

// sends takes n units one after the other and returns when each went.
func sends(t *testing.T, l *throttle.Limiter, n int) []time.Duration {
	t.Helper()
	start := time.Now()
	var at []time.Duration
	for range n {
		if _, err := l.Take(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		at = append(at, time.Since(start))
	}
	return at
}

func TestEachShapeOfRateSendsAtItsTimes(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name, budget string
		want         []time.Duration
	}{
		{"leaky bucket", "2/s burst 1", []time.Duration{0, s / 2, s, 3 * s / 2}},
		{"spent freely in a sliding window", "2/s burst 2", []time.Duration{0, 0, s, s, 2 * s}},
		{"burst, then the rate, then the window", "4/4s burst 2", []time.Duration{0, 0, s, 2 * s, 4 * s, 4 * s, 5 * s}},
		{"plain bucket", "1/s bucket 3", []time.Duration{0, 0, 0, s, 2 * s}},
		{"stacked", "2/s burst 2, 3/10s burst 3", []time.Duration{0, 0, s, 10 * s, 10 * s, 11 * s}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := sends(t, newLimiter(t, test.budget), len(test.want))
				for i := range got {
					if got[i] < test.want[i] || got[i] > test.want[i]+time.Microsecond {
						t.Fatalf("sent at %v, want %v", got, test.want)
					}
				}
			})
		})
	}
}

func TestDeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/m")
		sends(t, l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := l.Take(ctx, "k", nil)
		var e *throttle.Error
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !e.Timeout() {
			t.Fatalf("got %v, want a refusal because of the deadline", err)
		}
		if e.RetryAfter != time.Minute || e.Reason != throttle.WaitTooLong || e.Key != "k" || e.Unit != "requests" {
			t.Errorf("got %+v, want a wait of 1m for a request of k", e)
		}
		if time.Since(start) != 0 {
			t.Errorf("refused after %v, want at once", time.Since(start))
		}
		if got, want := err.Error(), "throttle: k: wait of 1m0s exceeds the 10s left until the deadline (1/m)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestAlignedQuotaComesBackAtMidnight resets at midnight there, and counts what is under way then
// on both sides.
func TestAlignedQuotaComesBackAtMidnight(t *testing.T) {
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

// TestWarmUpIsAsGuavas: the figures of Guava's SmoothWarmingUp.
func TestWarmUpIsAsGuavas(t *testing.T) {
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

// A Take that needs nothing of what others wait for goes at once, and is counted once.
func TestTakeOfWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "5/s burst 5, 1 tokens/h")
		tokens := throttle.Cost{"tokens": 1}
		if _, err := l.Take(t.Context(), "k", tokens); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := l.Take(throttle.WithMaxWait(ctx, 2*time.Hour), "k", tokens)
			gone <- err
		}()
		synctest.Wait()
		start := time.Now()
		for range 3 {
			if _, err := l.Take(t.Context(), "k", throttle.Cost{"requests": 1}); err != nil {
				t.Fatal(err)
			}
		}
		if h := l.Stats().Keys[0]; time.Since(start) != 0 || h.Granted != 4 || h.Queue != 1 {
			t.Errorf("after %v: %d granted, %d wait; want 4 and 1 at once", time.Since(start), h.Granted, h.Queue)
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
