package inspect

import (
	"net/http"
	"time"
)

// What tests cannot see on the page.

// FactOf shows how a limit reads that no server of the tests states so.
var FactOf = factOf

// LookedAt returns the names of the hosts that were last looked at at an instant:
// what a look costs.
func LookedAt(h http.Handler, at time.Time) (names []string) {
	for k, s := range h.(*handler).watch.hosts {
		if s.at.Equal(at) {
			names = append(names, k.name)
		}
	}
	return names
}

// LookAgain makes the next look a fresh one, for benchmarks, whose time is real.
func LookAgain(h http.Handler) { h.(*handler).watch.last.At = time.Time{} }

// KeptEvents is how many events are kept, and for how many there is room.
func KeptEvents(h http.Handler) (n, room int) {
	events := h.(*handler).watch.events
	return len(events), cap(events)
}

// EachHost calls yield as stats.json does, which looks at ten thousand hosts at
// once, for fewer at once.
func EachHost(h http.Handler, atOnce int, yield func(*Host) bool) {
	h.(*handler).watch.all(time.Now(), atOnce, yield)
}
