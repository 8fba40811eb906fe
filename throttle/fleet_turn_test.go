package throttle

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestFleetIsFairBetweenProcesses: processes that always want more get equal
// shares, however many goroutines wait in each, however slow the rate is, and
// also where there are more processes than bookings reach ahead.
func TestFleetIsFairBetweenProcesses(t *testing.T) {
	four := []int{200, 50, 10, 2}
	for _, tc := range []struct {
		rate    string
		d       time.Duration
		callers []int
		least   int // in all
	}{
		{"100/s bucket 10", 30 * time.Second, four, 2950},
		{"100/s", 30 * time.Second, four, 2500}, // 90/1.05 a second
		{"20/s", 60 * time.Second, four, 1100},
		{"4/s", 300 * time.Second, four, 1100},
		{"1/s bucket 1", 400 * time.Second, four, 390},
		{"60/m", 800 * time.Second, four, 700},
		{"10/s", 1500 * time.Second, slices.Concat(four, four, four, four), 13500}, // as long as chance needs to even out
	} {
		t.Run(strings.ReplaceAll(tc.rate, "/", " a "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowStore(time.Millisecond)
				counts := make([]int, len(tc.callers))
				var out fleetSends
				var wgs []*sync.WaitGroup
				for i, callers := range tc.callers {
					f := testFleet(t, s, FleetConfig{})
					wgs = append(wgs, fleetLoad(f, fleetOn("k", MustParseBudget(tc.rate).Rates[0]), callers, tc.d, &out, &counts[i]))
				}
				sum := 0
				for i, wg := range wgs {
					wg.Wait()
					sum += counts[i]
				}
				for i, n := range counts {
					if part := n * len(counts); part < sum*95/100-len(counts) || part > sum*105/100+len(counts) {
						t.Errorf("process %d got %d of %d, want an equal share within 5 %% and one", i, n, sum)
					}
				}
				if sum < tc.least {
					t.Errorf("%d requests in %v, want at least %d", sum, tc.d, tc.least)
				}
				t.Log(counts, s.calls(&s.books))
			})
		})
	}
}
