package refill

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Resets that are when a bucket is full are told from others, in whatever order answers come, and
// whichever way they are rounded.
func TestResetsThatAreWhenABucketIsFull(t *testing.T) {
	for _, c := range []struct {
		name  string
		reset func(now, lack float64) float64 // in seconds, of a limit of 80
		full  bool
	}{
		{"full, rounded up", func(_, lack float64) float64 { return math.Ceil(lack * .75) }, true},
		{"full, cut", func(_, lack float64) float64 { return math.Floor(lack * .75) }, true},
		{"a window", func(now, _ float64) float64 { return math.Ceil(60 - now) }, false},
		{"a window that is nearly over", func(now, _ float64) float64 { return math.Ceil(14 - now) }, false},
		{"a whole window", func(_, _ float64) float64 { return 60 }, false},
		{"the next unit", func(_, _ float64) float64 { return 1 }, false},
		{"the next unit of a slow bucket", func(_, _ float64) float64 { return 12 }, false},
	} {
		for seed := range uint64(20) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var f Filling
			now, lack := 0., 0.
			for n := range 79 {
				now += dice.ExpFloat64() * []float64{.02, .15}[seed%2]
				lack = math.Max(1, float64(n+1)-dice.Float64()*3)
				f.Heard(math.Ceil(lack), time.Duration(c.reset(now, lack))*time.Second)
				if r := f.Rate(); r > 0 && (!c.full || r > 1/.75+1e-9) {
					t.Fatalf("%s, seed %d: after %d answers the rate is %v", c.name, seed, n+1, r)
				}
			}
			if r := f.Rate(); c.full && r < .95/.75 {
				t.Errorf("%s, seed %d: the rate is %v, want %v", c.name, seed, r, 1/.75)
			}
		}
	}
}
