package meter

import (
	"math"
	"testing"
	"time"
)

// Instants do not overflow.
func TestInstantsDoNotOverflow(t *testing.T) {
	for _, test := range []struct {
		t    Instant
		d    time.Duration
		want Instant
	}{{1, 2, 3}, {Never, 0, Never}, {Never, 1, Never}, {Never - 5, 10, Never}, {5, -3, 2}} {
		if got := test.t.Add(test.d); got != test.want {
			t.Errorf("%d + %d: got %d, want %d", test.t, test.d, got, test.want)
		}
	}
	if got := Never.Until(5); got != Unknown {
		t.Errorf("until Never: %v", got)
	}
	if got := Instant(5).Until(8); got != 0 {
		t.Errorf("until what has passed: %v", got)
	}
}

// A cost draws one request if it says nothing of requests, and nothing else that it
// does not name.
func TestCostOf(t *testing.T) {
	for _, test := range []struct {
		cost map[string]int64
		unit string
		want int64
	}{{nil, Requests, 1}, {nil, "tokens", 0}, {map[string]int64{"tokens": 5}, "tokens", 5}, {map[string]int64{"tokens": 5}, Requests, 1}, {map[string]int64{Requests: 0}, Requests, 0}} {
		if got := CostOf(test.cost, test.unit); got != test.want {
			t.Errorf("%v of %v: got %d, want %d", test.unit, test.cost, got, test.want)
		}
	}
}

// A meter without a limit lets all go.
func TestOpenMeterHasNoLimit(t *testing.T) {
	if s := (Open{}).State(5); s.Units() != math.MaxInt64 || s.Most != math.MaxInt64 || s.Full != 5 || !s.Idle {
		t.Errorf("%+v", s)
	}
}
