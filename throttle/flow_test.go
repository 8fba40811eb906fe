package throttle

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestFlowStandsForAFinder: a finder made at the first refusal knows what one
// would that had been there from the start.
func TestFlowStandsForAFinder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var whole finder
		var f flow
		now := instant(1)
		whole.start(now.Time())
		f.start(now)
		for range 1 + r.IntN(60) {
			if now += instant(r.IntN(300)) * instant(time.Millisecond); r.IntN(40) == 0 {
				now += instant(forgetRate)
			}
			switch r.IntN(3) {
			case 0:
				whole.start(now.Time())
				f.start(now)
			case 1:
				whole.good(now.Time(), now.Time())
				f.good(now)
			case 2:
				whole.windows.done()
				f.done()
			}
		}
		made := *f.finder()
		made.recent, made.heard = whole.recent, whole.heard // an estimate
		if made != whole {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, made, whole)
		}
	}
}
