package meter_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Instants do not overflow.
func TestInstantsDoNotOverflow(t *testing.T) {
	for _, test := range []struct {
		t    meter.Instant
		d    time.Duration
		want meter.Instant
	}{{1, 2, 3}, {meter.Never, 0, meter.Never}, {meter.Never, 1, meter.Never}, {meter.Never - 5, 10, meter.Never}, {5, -3, 2}} {
		if got := test.t.Add(test.d); got != test.want {
			t.Errorf("%d + %d: got %d, want %d", test.t, test.d, got, test.want)
		}
	}
	if got := meter.Never.Until(5); got != meter.Unknown {
		t.Errorf("until Never: %v", got)
	}
	if got := meter.Instant(5).Until(8); got != 0 {
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
	}{{nil, meter.Requests, 1}, {nil, "tokens", 0}, {map[string]int64{"tokens": 5}, "tokens", 5}, {map[string]int64{"tokens": 5}, meter.Requests, 1}, {map[string]int64{meter.Requests: 0}, meter.Requests, 0}} {
		if got := meter.CostOf(test.cost, test.unit); got != test.want {
			t.Errorf("%v of %v: got %d, want %d", test.unit, test.cost, got, test.want)
		}
	}
}

// A meter without a limit lets all go.
func TestOpenMeterHasNoLimit(t *testing.T) {
	if s := (meter.Open{}).State(5); s.Units() != math.MaxInt64 || s.Most != math.MaxInt64 || s.Full != 5 || !s.Idle {
		t.Errorf("%+v", s)
	}
}
