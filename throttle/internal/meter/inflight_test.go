package meter

import "testing"

// Places in flight: how many are free, and that no time is known when none is.
func TestMeterOfPlaces(t *testing.T) {
	m := &InFlight{Limit: 2}
	if m.ETA(5, 0, 1) != 5 || m.ETA(5, 1, 1) != Never || m.At(5, 2) != 5 || m.At(5, 3) != 5 || !m.State(5).Idle || m.State(5).Units() != 2 {
		t.Error("two free places")
	}
	m.Take(5, 1, true)
	if m.At(5, 1) != 5 || m.At(5, 2) != Never || m.State(5).Idle || m.State(5).Units() != 1 {
		t.Error("one free place")
	}
	m.Take(5, 2, true)
	if m.At(5, 1) != Never || m.State(5).Units() != 0 {
		t.Error("one too many")
	}
}

// Nobody knows when all places in flight will be free while one is out.
func TestNobodyKnowsWhenPlacesInFlightAreFree(t *testing.T) {
	for out, want := range map[int64]Instant{0: 5, 1: Never, 2: Never} {
		if v := (&InFlight{Limit: 2, out: out}).State(5); v.Full != want || v.Left != float64(2-out) {
			t.Errorf("%d out: %+v", out, v)
		}
	}
}
