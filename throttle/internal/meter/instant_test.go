package meter

import (
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
