package words_test

import (
	"math"
	"testing"
	"testing/quick"
	"time"

	"github.com/weirhttp/weir/throttle/internal/words"
)

// TestTimesOfDay: a date stands before those that are not near.
func TestTimesOfDay(t *testing.T) {
	zero := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	now := time.Time{}.Add(time.Hour)
	for wait, want := range map[time.Duration]string{
		0:                             "13:00:00",
		12 * time.Hour:                "01:00:00",
		12*time.Hour + time.Second:    "2026-01-16 01:00:01",
		-time.Minute:                  "12:59:00",
		30*24*time.Hour + time.Minute: "2026-02-14 13:01:00",
	} {
		if got := words.Clock(now, zero, now.Add(wait)); got != want {
			t.Errorf("%v from now is %q, want %q", wait, got, want)
		}
	}
}

// TestNamesOfHeaders: as people write them, whatever the server wrote.
func TestNamesOfHeaders(t *testing.T) {
	for name, want := range map[string]string{
		"retry-after": "Retry-After", "RATELIMIT-RESET": "RateLimit-Reset", "x-ratelimit-limit": "X-RateLimit-Limit", "body": "the body",
	} {
		if got := words.Field(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// TestAmounts: without needless digits.
func TestAmounts(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 3: "3", 2.5: "2.5", 1. / 3: "0.333", 123.4: "123", 5000: "5000", 1e18: "1e+18"} {
		if got := words.Amount(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	words.Amount(math.Inf(1))
	words.Amount(math.NaN())
}

// TestWaitsAreNotShownShorter: nor longer by more than a second.
func TestWaitsAreNotShownShorter(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		999 * time.Nanosecond: 999 * time.Nanosecond, 1500 * time.Microsecond: 2 * time.Millisecond, 2 * time.Second: 2 * time.Second,
		time.Minute + time.Nanosecond: time.Minute + time.Second,
	} {
		if got := words.Round(d); got != want {
			t.Errorf("%v is shown as %v, want %v", d, got, want)
		}
	}
	if err := quick.Check(func(n uint32, shift uint8) bool {
		d := time.Duration(n) << (shift % 30)
		return words.Round(d) >= d && words.Round(d)-d <= time.Second
	}, nil); err != nil {
		t.Error(err)
	}
}
