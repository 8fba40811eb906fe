package learn

import (
	"math"
	"testing"
	"time"
)

// TestRounderNumbersAreLikelier: each of these is less likely to be a limit than the one
// before it.
func TestRounderNumbersAreLikelier(t *testing.T) {
	for _, row := range [][]float64{{1000, 500, 300, 600, 800, 120, 70, 85, 123}, {1, 2, 3, 4, 8}, {60, 65, 62, 61.5, 61.23, 61.234}, {5, 0}} {
		for i := 1; i < len(row); i++ {
			if a, b := odd(row[i-1]), odd(row[i]); a > b {
				t.Errorf("odd(%v) = %v, odd(%v) = %v", row[i-1], a, row[i], b)
			}
		}
	}
	if odd(.05) != odd(5000) {
		t.Error("a power of ten matters")
	}
	for _, row := range [][]time.Duration{{time.Minute, time.Hour, 5 * time.Minute, 15 * time.Second, 2 * time.Minute, 7 * time.Second, 13 * time.Second, 1300 * time.Millisecond}, {2 * time.Minute, 17 * time.Minute}, {10 * time.Second, 20 * time.Second}} {
		for i := 1; i < len(row); i++ {
			if a, b := oddPeriod(Instant(row[i-1])), oddPeriod(Instant(row[i])); a > b {
				t.Errorf("a period of %v: %v, of %v: %v", row[i-1], a, row[i], b)
			}
		}
	}
}

// TestTheRoundestNumberOfARange is in it, and as round as any.
func TestTheRoundestNumberOfARange(t *testing.T) {
	for _, test := range []struct{ lo, hi, want float64 }{
		{95, 105, 100}, {41, 62, 50}, {19.5, 20.4, 20}, {3, 3, 3}, {7, 2, 7}, {110, 118, 110}, {.9, 1.1, 1}, {.004, .0056, .005}, {1234, 1234.5, 1234},
	} {
		got := roundest(test.lo, test.hi)
		if test.lo < test.hi && (got < test.lo || got > test.hi) || odd(got) > odd(test.want) {
			t.Errorf("of %v to %v: %v, want %v", test.lo, test.hi, got, test.want)
		}
	}
	for _, test := range []struct{ lo, hi, want float64 }{
		{95, 105, 100}, {.2, 1.5, 1}, {2.2, 2.8, 0}, {17, 17, 17}, {0, .5, 0}, {16.2, 19.9, 18}, {58, 63, 60},
	} {
		got := roundestCount(test.lo, test.hi)
		if test.want == 0 && got != 0 || test.want != 0 && (got < test.lo-1e-6 || got > test.hi+1e-6 || odd(got) > odd(test.want)) {
			t.Errorf("whole numbers of %v to %v: %v, want %v", test.lo, test.hi, got, test.want)
		}
	}
}

// TestDecade: a number that is less than a power of ten only by an error of rounding is in its decade.
func TestDecade(t *testing.T) {
	for k := -12; k <= 15; k++ {
		ten := math.Pow(10, float64(k))
		for _, test := range []struct{ x, want float64 }{
			{ten, ten}, {ten * (1 - 1e-12), ten}, {ten * (1 - 1e-8), ten / 10}, {1.5 * ten, ten}, {9.99 * ten, ten},
		} {
			if got := decade(test.x); math.Abs(got/test.want-1) > 1e-12 {
				t.Errorf("decade(%v) is %v, want %v", test.x, got, test.want)
			}
		}
	}
	for _, x := range []float64{math.Inf(1), math.SmallestNonzeroFloat64, math.NaN()} {
		if got := decade(x); got < 0 || math.IsNaN(got) { // and it ends
			t.Errorf("decade(%v) is %v", x, got)
		}
	}
}
