package queue

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Whatever comes and goes, the first is one whose time ends first, and each knows its
// index as long as it is there.
func TestExpiryKnowsWhoseTimeEndsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h expiry
		there := make(map[*Waiter]bool)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "what") > 0 || len(h) == 0 {
				w := &Waiter{expires: meter.Instant(rapid.IntRange(1, 30).Draw(t, "expires"))}
				h.push(w)
				there[w] = true
			} else {
				w := h[rapid.IntRange(0, len(h)-1).Draw(t, "gone")].w
				h.remove(int(w.inExpiry))
				if delete(there, w); w.inExpiry != -1 {
					t.Fatalf("one that has gone has index %d", w.inExpiry)
				}
			}
			first := meter.Never
			for w := range there {
				if first = min(first, w.expires); h[w.inExpiry] != (expires{w.expires, w}) {
					t.Fatalf("at index %d stands another", w.inExpiry)
				}
			}
			if len(h) != len(there) {
				t.Fatalf("%d, want %d", len(h), len(there))
			}
			if len(h) > 0 && h[0].at != first {
				t.Fatalf("the first ends at %d, want %d", h[0].at, first)
			}
		}
	})
}
