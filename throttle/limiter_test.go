package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newLimiter(t testing.TB, budget string) *Limiter {
	t.Helper()
	l, err := NewLimiter(LimiterConfig{Default: MustParseBudget(budget)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sends takes n units one after the other and returns when each went.
func sends(t *testing.T, l *Limiter, n int) []time.Duration {
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

func TestShapes(t *testing.T) {
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
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !e.Timeout() {
			t.Fatalf("got %v, want a refusal because of the deadline", err)
		}
		if e.RetryAfter != time.Minute || e.Reason != WaitTooLong || e.Key != "k" || e.Unit != "requests" {
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
