package learn

import (
	"math/rand/v2"
	"testing"
)

// TestTheServersClockIsKnown: a hundred answers that took 20 to 40 ms bound it
// within 60 ms (ten, at random instants, within some 100 ms), and nothing
// that a Date says moves it out of what it is.
func TestTheServersClockIsKnown(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		var w wall
		off := Instant(1.7e18 + r.Float64()*1e9)
		now := zero
		for range 100 {
			sent := now
			arrived := sent + Instant(r.Float64()*float64(trip))
			now = arrived + Instant(r.Float64()*float64(trip))
			w.date(int64((arrived+off)/second), sent, now)
			if off < w.lo || off > w.hi {
				t.Fatalf("the clock is %v ahead, believed %v to %v", off, w.lo, w.hi)
			}
			now += Instant(r.Float64() * .3e9)
		}
		if w.doubt() > 60e6 {
			t.Errorf("seed %d: known within %v", seed, w.doubt())
		}
	}
}

// TestAClockThatIsSetIsLearnedAnew: an answer that contradicts all before it
// counts alone.
func TestAClockThatIsSetIsLearnedAnew(t *testing.T) {
	var w wall
	w.date(1000, zero, zero+trip)
	w.date(5000, zero+second, zero+second+trip)
	if got := 5000*second - w.lo; got < zero || got > zero+2*second+trip {
		t.Errorf("5000 s is at %v", got)
	}
	for _, d := range []int64{-1, 0, 1 << 62} {
		before := w
		if w.date(d, zero, zero+trip); w != before {
			t.Errorf("believes the date %d", d)
		}
	}
}
