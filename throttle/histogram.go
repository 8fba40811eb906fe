package throttle

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/histogram"
)

// HistogramBounds returns the upper ends of the buckets that every [Histogram]
// has, the smallest first: from 1 ms to 5 minutes. A duration that is just as
// long as a bound belongs to it.
func HistogramBounds() []time.Duration {
	bounds := histogram.Bounds()
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
	bounds := histogram.Bounds()
	for i, high := range bounds[:min(len(bounds), len(h.Counts))] {
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

// add adds c, which may be nil, to h.
func (h *Histogram) add(c *histogram.Counts) {
	if c == nil {
		return
	}
	if h.Sum += c.Sum(); h.Sum < 0 {
		h.Sum = math.MaxInt64
	}
	if h.Counts == nil {
		h.Counts = make([]int64, histogram.Buckets)
	}
	for i := range h.Counts {
		n := c.In(i)
		h.Counts[i] += n
		h.Count += n
	}
}
