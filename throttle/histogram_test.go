package throttle

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"
)

func (t *tally) histogram() (h Histogram) {
	t.addTo(&h)
	return h
}

// TestHistogramBounds: a duration belongs to the first bound that it does not
// exceed.
func TestHistogramBounds(t *testing.T) {
	bounds := HistogramBounds()
	if !slices.IsSorted(bounds) || bounds[0] != time.Millisecond || bounds[len(bounds)-1] != 5*time.Minute {
		t.Fatalf("bounds %v", bounds)
	}
	for i, b := range bounds {
		for _, d := range []time.Duration{b, b + 1} {
			var x *tally
			add(&x, d)
			want := i
			if d > b {
				want++
			}
			if h := x.histogram(); h.Counts[want] != 1 || h.Count != 1 || h.Sum != d {
				t.Errorf("%v: %+v, want one in bucket %d", d, h, want)
			}
		}
	}
	bounds[0] = 0
	if HistogramBounds()[0] != time.Millisecond {
		t.Error("a caller changed the bounds")
	}
}

// TestTallyIsSmallAndWide: a record holds little, and counts beyond 32 bits.
func TestTallyIsSmallAndWide(t *testing.T) {
	if n := unsafe.Sizeof(tally{}); n > 80 {
		t.Errorf("a tally takes %d bytes", n)
	}
	x := &tally{sum: math.MaxInt64 - 5}
	x.counts[0] = math.MaxUint32
	x.add(10)
	x.add(-10 + 11)
	if h := x.histogram(); h.Counts[0] != 1<<32+1 || h.Count != 1<<32+1 || h.Sum < math.MaxInt64-5 {
		t.Errorf("%+v", h)
	}
	var clockStep *tally
	add(&clockStep, -time.Second)
	if h := clockStep.histogram(); h.Counts[0] != 1 || h.Sum != 0 {
		t.Errorf("a negative duration: %+v", h)
	}
}

func TestQuantileLiesWithinItsBucket(t *testing.T) {
	var h Histogram
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("median of nothing: %v", got)
	}
	var x *tally
	for range 100 {
		add(&x, 7*time.Millisecond) // between 5 and 10
	}
	for range 100 {
		add(&x, 2*time.Second) // between 1 and 2.5
	}
	h = x.histogram()
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{
		{0, 5 * time.Millisecond}, {0.25, 7500 * time.Microsecond}, {0.5, 10 * time.Millisecond},
		{0.75, 1750 * time.Millisecond}, {1, 2500 * time.Millisecond}, {7, 2500 * time.Millisecond},
	} {
		if got := h.Quantile(tt.q); got != tt.want {
			t.Errorf("quantile %v: %v, want %v", tt.q, got, tt.want)
		}
	}
	for range 1000 {
		add(&x, time.Hour)
	}
	h = x.histogram()
	if got := h.Quantile(0.95); got != 5*time.Minute {
		t.Errorf("beyond all bounds: %v", got)
	}
}
