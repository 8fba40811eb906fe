package fleet

import (
	"math"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Of processes that hear of each window in the same order, and then draw what they may,
// the last ones get as much as the first: nobody is ever six units off an equal part.
func TestLeadsAreEven(t *testing.T) {
	const k, windows = 16, 12
	for _, size := range []int{22, 60, 183} {
		tally := NewTally("x", "requests")
		leads, drawn := make([]Lead, k), make([]int, k)
		now := meter.Instant(time.Hour)
		for range windows {
			left := size
			for i := range leads {
				leads[i].Lacks(now)
			}
			for ; left > 0; now = now.Add(mostTurn) {
				for i := range leads {
					for left > 0 {
						share := float64(left) / k
						ahead := leads[i].Ahead(tally, k, float64(size)) + 1 - share
						if leads[i].Wait(now, ahead, max(1, share), time.Minute, tally.count-int64(drawn[i])) > 0 {
							break
						}
						leads[i].Drew(1)
						drawn[i]++
						tally.count++
						left--
					}
				}
			}
			for i, n := range drawn {
				if part := float64(tally.count) / k; math.Abs(float64(n)-part) >= 6 {
					t.Fatalf("of %d per window, process %d drew %d, want about %.1f: %v", size, i, n, part, drawn)
				}
			}
		}
	}
}
