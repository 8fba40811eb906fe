package headers_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// Durations by their units, as Go writes them, as ISO 8601 does and as a clock.
func TestSpans(t *testing.T) {
	for names, unit := range map[string]time.Duration{
		"ns": 1, "us µs μs": time.Microsecond, "ms msec millis millisecond milliseconds": time.Millisecond,
		"s sec secs second seconds": time.Second, "m min mins minute minutes": time.Minute,
		"h hr hrs hour hours": time.Hour, "d day days": day, "w week weeks": 7 * day,
	} {
		for _, name := range strings.Fields(names) {
			for _, form := range []string{"3%s", "3 %s", "3  %s ", "1%[1]s2%[1]s", "1 %[1]s 2 %[1]s"} {
				text := fmt.Sprintf(form, name)
				if got := waitOf(text); got != some(3*unit) {
					t.Errorf("%q is %v, want %v", text, got, 3*unit)
				}
			}
			if got := waitOf("1.5" + name); got != some(unit+unit/2) {
				t.Errorf("1.5%s is %v", name, got)
			}
		}
	}
	for i := range 200 {
		d := time.Duration(math.Pow(1.2, float64(i))) + time.Duration(i)
		if d <= 0 || d > maxDuration/2 {
			break
		}
		if got := waitOf(d.String()); !got.Known || (got.Value-d).Abs() > time.Microsecond && (got.Value-d).Abs() > d/1e9 {
			t.Errorf("%v is %v", d, got)
		}
	}
	for text, want := range map[string]time.Duration{
		"PT5S": 5 * time.Second, "PT2M": 2 * time.Minute, "PT2H": 2 * time.Hour, "P3D": 3 * day, "P2W": 14 * day, "P1DT2H3M4.5S": day + 2*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"0:00:00": 0, "1:02:03": time.Hour + 2*time.Minute + 3*time.Second, "00:59:59.5": 59*time.Minute + 59500*time.Millisecond, "30:00:00": 30 * time.Hour,
		"2.03:00:00": 2*day + 3*time.Hour,
		"P":          -1, "PT": -1, "P1DT": -1, "P1M": -1, "P1Y": -1, "PT1D": -1, "P1H": -1, "PTM": -1, "P1": -1, "PT1": -1, "PT-1S": -1,
		"1:2:03": -1, "1:02:3": -1, "1:60:00": -1, "1:00:60": -1, "a:00:00": -1, "1:ab:00": -1, "1:00:ab": -1, "x.1:00:00": -1, "1.x:00:00": -1, "1:00": -1,
		"": -1, "s": -1, "5x": -1, "-5s": -1, "5s5": -1, "5.s": -1, strings.Repeat("1s", 32): 32 * time.Second, strings.Repeat("1s", 33): -1,
	} {
		got := waitOf(text)
		if got.Known != (want >= 0) || got.Known && got.Value != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}
