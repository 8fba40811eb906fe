package throttle

import (
	"math"
	"testing"
	"time"
	"unsafe"
)

// These look inside, as nobody counts beyond 32 bits, or sets the clock back, through a
// Transport.

func (t *tally) histogram() (h Histogram) {
	t.addTo(&h)
	return h
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

// TestTalliesAreAddedUp: also beyond 32 bits, and none is shared.
func TestTalliesAreAddedUp(t *testing.T) {
	var a, b, fresh *tally
	for _, x := range []**tally{&a, &b} {
		add(x, time.Second)
	}
	a.counts[8], b.counts[8] = 1<<32-1, 2
	mergeTally(&a, b)
	if h := a.histogram(); h.Counts[8] != 1<<32+1 || h.Count != 1<<32+1 || h.Sum != 2*time.Second {
		t.Errorf("%+v", h)
	}
	if mergeTally(&fresh, b); fresh == b {
		t.Error("a tally is shared")
	}
}
