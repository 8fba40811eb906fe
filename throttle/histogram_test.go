package throttle_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// latencies are what a Transport counts of requests whose answers take so long.
func latencies(t *testing.T, took ...time.Duration) throttle.Histogram {
	t.Helper()
	i := -1
	tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
		i++
		time.Sleep(took[i])
		return testnet.Answer(r, 200, nil, nil), nil
	}), throttle.Config{DisableLearning: true})
	for range took {
		mustGet(t, tr, "http://a/")
	}
	return statsOf(t, tr).Latency
}

// TestHistogramBounds: a duration belongs to the first bound that it does not
// exceed.
func TestHistogramBounds(t *testing.T) {
	bounds := throttle.HistogramBounds()
	if !slices.IsSorted(bounds) || bounds[0] != time.Millisecond || bounds[len(bounds)-1] != 5*time.Minute {
		t.Fatalf("bounds %v", bounds)
	}
	synctest.Test(t, func(t *testing.T) {
		for i, b := range bounds {
			for _, d := range []time.Duration{b, b + 1} {
				want := i
				if d > b {
					want++
				}
				if h := latencies(t, d); h.Counts[want] != 1 || h.Count != 1 || h.Sum != d {
					t.Errorf("%v: %+v, want one in bucket %d", d, h, want)
				}
			}
		}
	})
	bounds[0] = 0
	if throttle.HistogramBounds()[0] != time.Millisecond {
		t.Error("a caller changed the bounds")
	}
}

func TestQuantileLiesWithinItsBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h throttle.Histogram
		if got := h.Quantile(0.5); got != 0 {
			t.Errorf("median of nothing: %v", got)
		}
		took := slices.Concat(slices.Repeat([]time.Duration{7 * time.Millisecond}, 100), // between 5 and 10
			slices.Repeat([]time.Duration{2 * time.Second}, 100)) // between 1 and 2.5
		h = latencies(t, took...)
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
		h = latencies(t, append(took, slices.Repeat([]time.Duration{time.Hour}, 1000)...)...)
		if got := h.Quantile(0.95); got != 5*time.Minute {
			t.Errorf("beyond all bounds: %v", got)
		}
	})
}
