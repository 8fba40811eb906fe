package throttle

import (
	"math"
	"time"
)

// histogramBounds are the upper ends of a Histogram's buckets. It is never
// written to.
var histogramBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// HistogramBounds returns the upper ends of the buckets that every [Histogram]
// has, the smallest first: from 1 ms to 5 minutes. A duration that is just as
// long as a bound belongs to it.
func HistogramBounds() []time.Duration {
	bounds := histogramBounds
	return bounds[:]
}

// Histogram counts durations by length. Its buckets are fixed, so that those of
// several hosts or processes can be added up. The zero Histogram is empty.
type Histogram struct {
	Counts []int64       // by HistogramBounds, each without those before it; the last: longer than all bounds. nil: Count is 0
	Count  int64         // of all
	Sum    time.Duration // of all
}

// Quantile estimates the duration that the share q, between 0 and 1, of all does
// not exceed: 0.5 for the median. Within a bucket durations are taken to be
// spread evenly; of those beyond the last bound that bound is all that is known.
// An empty Histogram has 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	if len(h.Counts) == 0 {
		return 0
	}
	rank := max(0, min(q, 1)) * float64(h.Count)
	low := time.Duration(0)
	for i, high := range histogramBounds[:min(len(histogramBounds), len(h.Counts))] {
		n := float64(h.Counts[i])
		if n > 0 && rank <= n {
			return low + time.Duration(rank/n*float64(high-low))
		}
		rank -= n
		low = high
	}
	if h.Count == 0 {
		return 0
	}
	return low
}

// tally is a Histogram as a host's record holds it: small. What a count is too
// narrow for is carried over.
type tally struct {
	sum    time.Duration
	counts [len(histogramBounds) + 1]uint32
	carry  *[len(histogramBounds) + 1]uint32 // nil: nothing yet
}

// add counts d in *t, which is made if need be. The lock is held.
func add(t **tally, d time.Duration) {
	if *t == nil {
		*t = new(tally)
	}
	(*t).add(max(0, d))
}

func (t *tally) add(d time.Duration) {
	i := 0
	for i < len(histogramBounds) && d > histogramBounds[i] {
		i++
	}
	if t.counts[i]++; t.counts[i] == 0 {
		if t.carry == nil {
			t.carry = new([len(histogramBounds) + 1]uint32)
		}
		t.carry[i]++
	}
	if t.sum += d; t.sum < 0 {
		t.sum = math.MaxInt64
	}
}

// mergeTally adds o, which may be nil, to *t, which is made if need be.
func mergeTally(t **tally, o *tally) {
	if o == nil {
		return
	}
	if *t == nil {
		*t = new(tally)
	}
	x := *t
	for i, n := range o.counts {
		carry := uint64(x.counts[i]) + uint64(n)
		x.counts[i] = uint32(carry)
		if carry >>= 32; o.carry != nil {
			carry += uint64(o.carry[i])
		}
		if carry > 0 && x.carry == nil {
			x.carry = new([len(histogramBounds) + 1]uint32)
		}
		if carry > 0 {
			x.carry[i] += uint32(carry)
		}
	}
	if x.sum += o.sum; x.sum < 0 {
		x.sum = math.MaxInt64
	}
}

// addTo adds t, which may be nil, to h.
func (t *tally) addTo(h *Histogram) {
	if t == nil {
		return
	}
	if h.Sum += t.sum; h.Sum < 0 {
		h.Sum = math.MaxInt64
	}
	if h.Counts == nil {
		h.Counts = make([]int64, len(t.counts))
	}
	for i, n := range t.counts {
		all := int64(n)
		if t.carry != nil {
			all += int64(t.carry[i]) << 32
		}
		h.Counts[i] += all
		h.Count += all
	}
}
