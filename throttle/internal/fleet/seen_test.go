package fleet

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A call that was sent before a process heard of some units is answered by a store that has lost
// them. The process still tells it of them with the next call.
func TestWhatAStoreLostIsRememberedUntilItWasTold(t *testing.T) {
	f := New(store.NewMemory(), Config{})
	defer f.Close()
	now := time.Now()
	answer := func(seen store.Seen, gen, at int64, level float64) {
		d := store.Draw{Key: "k", Limits: []store.Limit{{ID: "l", Kind: store.LogLimit, Size: 9, Per: time.Minute}}, Units: []store.UnitCost{{Unit: "requests"}}, Seen: seen}
		r := store.Booked{Ready: at, Keys: []store.Standing{{Gen: gen, At: at, Levels: []float64{level}}}}
		f.heard(store.Booking{Draws: []store.Draw{d}}, r, now)
	}
	at := now.UnixMicro()
	answer(store.Seen{}, 1, at, 7)
	answer(store.Seen{}, 2, at+1, 1)
	seen := f.recall("k", 1, now)
	if seen.Gen != 1 || seen.Levels[0] != 7 {
		t.Errorf("remembers %+v, want the 7 units that were lost", seen)
	}
	answer(seen, 2, at+2, 8)
	if seen := f.recall("k", 1, now); seen.Gen != 2 || seen.Levels[0] != 8 {
		t.Errorf("remembers %+v, want what the store said when it was told", seen)
	}
}
