package fleet

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
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
				s := farstore.New(time.Millisecond)
				counts := make([]atomic.Int64, len(tc.callers))
				var out farstore.Sends
				var wgs []*sync.WaitGroup
				for i, callers := range tc.callers {
					f := testFleet(t, s, Config{})
					wgs = append(wgs, load(f, on("k", rates(tc.rate)[0]), callers, tc.d, &out, &counts[i]))
				}
				sum := 0
				for i, wg := range wgs {
					wg.Wait()
					sum += int(counts[i].Load())
				}
				for i := range counts {
					n := int(counts[i].Load())
					if part := n * len(counts); part < sum*95/100-len(counts) || part > sum*105/100+len(counts) {
						t.Errorf("process %d got %d of %d, want an equal share within 5 %% and one", i, n, sum)
					}
				}
				if sum < tc.least {
					t.Errorf("%d requests in %v, want at least %d", sum, tc.d, tc.least)
				}
				t.Log(sum, s.Books())
			})
		})
	}
}

// TestFleetAsksWhenAWindowBegins: while a window by the clock has no room left, nobody asks the
// store again and again.
func TestFleetAsksWhenAWindowBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var out farstore.Sends
		var n atomic.Int64
		var wgs []*sync.WaitGroup
		for range 8 {
			wgs = append(wgs, load(testFleet(t, s, Config{}), on("k", rates("20/s burst 20 align UTC")...), 4, 10*time.Second, &out, &n))
		}
		for _, wg := range wgs {
			wg.Wait()
		}
		if n.Load() < 180 || s.Books() > int(4*n.Load()) {
			t.Errorf("%d requests and %d calls of the store, want at least 180, and at most 4 calls for each", n.Load(), s.Books())
		}
	})
}

// Whose turn it is among processes: who missed most asks first.
func TestFleetTurns(t *testing.T) {
	now, reach := time.Unix(0, 0), time.Second
	var a turn
	in := func(at time.Time) time.Duration { return at.Sub(now) }
	if got := in(a.served(now, reach/2, reach, 0)); got != reach/2 {
		t.Errorf("with room for more: %v", got)
	}
	if got := in(a.served(now, reach/2+1, reach, 0)); got != reach/2+1+reach/20 {
		t.Errorf("without: %v", got)
	}
	for i := 1; i <= mostMissed+2; i++ {
		missed := min(i, mostMissed)
		want := max(reach/200, reach/20*time.Duration(mostMissed-missed)/mostMissed)
		if got := in(a.refused(now, reach, reach, false)); got != want || a.missed != missed {
			t.Errorf("refusal %d: %v after %d, want %v", i, got, a.missed, want)
		}
	}
	a = turn{}
	if got := in(a.refused(now, reach+reach/2, reach, false)); got != reach/2+reach/20*(mostMissed-1)/mostMissed {
		t.Errorf("beyond reach: %v", got)
	}
	if a.refused(now.Add(reach/2-1), reach, reach, false); a.missed != 1 {
		t.Errorf("a refusal before its turn: missed %d", a.missed)
	}
	if got := in(a.refused(now, 10*time.Second, reach, false)); got != store.Ahead {
		t.Errorf("far beyond reach: %v", got)
	}
	if got := in(a.refused(now, reach/1000, reach, false)); got != reach/1000 {
		t.Errorf("just before: %v", got)
	}
	a = turn{}
	for _, missed := range []int{1, 2} {
		if got, want := in(a.refused(now, reach/10, reach, true)), reach/10+reach/20*time.Duration(mostMissed-missed)/mostMissed; got != want {
			t.Errorf("before a window by the clock: %v, want %v", got, want)
		}
		now = now.Add(reach)
	}
}
