package retry

import (
	"testing"
	"time"
)

// A share of the latencies is counted to its end: half of two halves is
// where the second begins.
func TestQuantileBetweenTwoHalves(t *testing.T) {
	var l latency
	for range minSamples / 2 {
		l.add(20 * time.Millisecond)
		l.add(80 * time.Millisecond)
	}
	if d, ok := l.quantile(0.49); !ok || d < 20*time.Millisecond || d > 25*time.Millisecond {
		t.Errorf("just below half: %v, %t", d, ok)
	}
	if d, ok := l.quantile(0.5); !ok || d < 80*time.Millisecond || d > 100*time.Millisecond {
		t.Errorf("half: %v, %t", d, ok)
	}
}

// one is 1 for true and 0 for false.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
