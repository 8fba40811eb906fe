package concurrency_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const hour = meter.Instant(time.Hour)

// TestAStartLetsFewGo: each takes a place until it ends, and it says so.
func TestAStartLetsFewGo(t *testing.T) {
	s := concurrency.NewStart()
	if got, want := s.Words(hour), "at most 4 at a time until it has answered more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var last meter.Token
	for s.At(hour, 1) <= hour {
		if last = s.Take(hour, 1, true); s.Slow.UnderWay() > 4 {
			t.Fatal("more than 4 go")
		}
	}
	if s.Slow.UnderWay() != 4 || s.ETA(hour, 0, 1) != meter.Never || !s.Spares(hour) {
		t.Errorf("%d go, the next in %v", s.Slow.UnderWay(), s.ETA(hour, 0, 1))
	}
	s.Return(hour, 1, last, hour, 0)
	if s.At(hour, 1) > hour || s.ETA(hour, 0, 1) > hour {
		t.Error("the place of one that ended is not free")
	}
}

// TestAStartThatIsOverCountsNobody: what was not counted when it began is not when it ends.
func TestAStartThatIsOverCountsNobody(t *testing.T) {
	s := concurrency.NewStart()
	early := s.Take(hour, 1, true)
	for range 2000 {
		s.Slow.Answered(hour, time.Millisecond)
	}
	late := s.Take(hour, 1, true)
	if !s.Slow.Free() || s.Slow.UnderWay() != 1 {
		t.Fatalf("free: %v, with %d under way", s.Slow.Free(), s.Slow.UnderWay())
	}
	s.Return(hour, 1, late, hour, 0)
	if s.Slow.UnderWay() != 1 {
		t.Errorf("%d are under way, want 1", s.Slow.UnderWay())
	}
	if s.Return(hour, 1, early, hour, 0); s.Slow.UnderWay() != 0 || s.Lends() {
		t.Errorf("%d are under way, want 0; lends: %v", s.Slow.UnderWay(), s.Lends())
	}
}

// TestTheStartsOfAFleetAreOne: each lets one go, and none lets one more go, or one first.
func TestTheStartsOfAFleetAreOne(t *testing.T) {
	s := concurrency.NewStart()
	s.Share(hour)
	if s.Take(hour, 1, true); s.At(hour, 1) <= hour || s.Spares(hour) || s.Lends() {
		t.Errorf("a second one goes: %v, spares: %v, lends: %v", s.At(hour, 1) <= hour, s.Spares(hour), s.Lends())
	}
}

// TestAHeadStartWaitsForAShortTime: for the slow start of its host, or not at all if the host has
// answered one of its kind. One has it at a time.
func TestAHeadStartWaitsForAShortTime(t *testing.T) {
	s := concurrency.NewStart()
	for range 40 { // as many as hold up others for longer than that
		s.Take(hour, 1, true)
	}
	h := concurrency.NewHead(&s)
	for _, test := range []struct {
		answered bool
		want     time.Duration
	}{{true, 0}, {false, 750 * time.Millisecond}} {
		if !s.Lends() || !h.Offer(hour, test.answered) {
			t.Fatal("no head start for the first of its kind")
		}
		now := hour
		for at := h.At(now, 1); at > now; at = h.At(now, 1) {
			now = at // others may be under way too long to count by then
		}
		if got := now.Sub(hour); got != test.want {
			t.Errorf("it waits for %v, want %v", got, test.want)
		}
	}
	later := hour.Add(time.Second)
	m := h.Take(later, 1, true)
	if h.Offer(later, true) || h.At(later, 1) != meter.Never || h.Spares(later) {
		t.Error("a second one of its kind has it")
	}
	if h.Return(later, 1, m, later, 0); !h.Offer(later, true) || h.At(later, 1) > later {
		t.Error("the next one of its kind does not have it")
	}
}

// TestHeadStartsAreFew: of any number of kinds.
func TestHeadStartsAreFew(t *testing.T) {
	s, n := concurrency.NewStart(), 0
	for ; n < 100 && s.Lends(); n++ {
		h := concurrency.NewHead(&s)
		h.Take(hour, 1, true)
	}
	if h := concurrency.NewHead(&s); n != 16 || !h.Offer(hour, true) || h.At(hour, 1) <= hour {
		t.Errorf("%d have a head start, want 16, and the next one has to wait", n)
	}
}
