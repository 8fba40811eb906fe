package histogram_test

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/weirhttp/weir/throttle/internal/histogram"
)

// TestADurationBelongsToTheFirstBoundThatHoldsIt.
func TestADurationBelongsToTheFirstBoundThatHoldsIt(t *testing.T) {
	for i, b := range histogram.Bounds() {
		for d, want := range map[time.Duration]int{b: i, b + 1: i + 1} {
			var c *histogram.Counts
			if histogram.Add(&c, d); c.In(want) != 1 || c.Sum() != d {
				t.Errorf("%v is not in bucket %d, or its sum is %v", d, want, c.Sum())
			}
		}
	}
}

// TestCountsAreSmall: a host's record holds little.
func TestCountsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(histogram.Counts{}); n > 80 {
		t.Errorf("they take %d bytes", n)
	}
}

// TestCountsGoBeyond32Bits, also those that are added up, and a sum stays at its most.
func TestCountsGoBeyond32Bits(t *testing.T) {
	var c, fresh *histogram.Counts
	histogram.Add(&c, time.Hour)
	histogram.Add(&c, -time.Second)
	if c.In(0) != 1 || c.Sum() != time.Hour {
		t.Errorf("a negative duration: %d, %v", c.In(0), c.Sum())
	}
	for range 33 {
		histogram.Merge(&c, c)
	}
	histogram.Add(&c, time.Hour)
	histogram.Merge(&fresh, c)
	histogram.Merge(&fresh, nil)
	last := histogram.Buckets - 1
	for _, x := range []*histogram.Counts{c, fresh} {
		if x.In(0) != 1<<33 || x.In(last) != 1<<33+1 || x.Sum() != math.MaxInt64 {
			t.Errorf("%d, %d, %v", x.In(0), x.In(last), x.Sum())
		}
	}
	if fresh == c {
		t.Error("they are shared")
	}
	if histogram.Add(&c, 0); fresh.In(0) != 1<<33 {
		t.Error("a number is shared")
	}
}
