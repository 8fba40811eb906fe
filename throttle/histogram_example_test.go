package throttle_test

import (
	"fmt"

	"github.com/weirhttp/weir/throttle"
)

func ExampleHistogram() {
	latency := throttle.Histogram{ // as from Stats().Hosts[0].Latency
		Count:  100,
		Counts: []int64{3: 90, 8: 10, 15: 0}, // between 10 and 25 ms, and between 500 ms and 1 s
	}
	for i, n := range latency.Counts {
		if bounds := throttle.HistogramBounds(); n > 0 && i < len(bounds) {
			fmt.Println(n, "up to", bounds[i])
		}
	}
	fmt.Println("median", latency.Quantile(0.5).Round(1e6), "and 95% within", latency.Quantile(0.95))
	// Output:
	// 90 up to 25ms
	// 10 up to 1s
	// median 18ms and 95% within 750ms
}
