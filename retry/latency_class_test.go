package retry

import (
	"testing"
	"time"
)

// This test is in the package because a class of the histogram that is too wide or
// missing moves a learned delay by little, and only at that latency.

// The histogram's classes cover all latencies without a gap, each at most a
// fifth wide.
func TestLatencyClasses(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 5*time.Minute; d = d + d/50 + 50*time.Microsecond {
		c := class(d)
		if c < last || c > last+1 {
			t.Fatalf("%v is of class %d after %d", d, c, last)
		}
		if up := upper(c); c < octaves*perOctave-1 && (up <= d || up > d+(d+time.Millisecond)/3) {
			t.Fatalf("%v is of class %d, up to %v", d, c, up)
		}
		last = c
	}
	if class(-time.Second) != 0 || class(1<<62) != octaves*perOctave-1 {
		t.Error("the ends are open")
	}
}
