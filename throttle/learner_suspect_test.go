package throttle

import (
	"testing"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/kind"
)

// burden lets k be answered well once, and then that the host is overloaded.
func burden(k *endpoint, at instant) {
	k.overload.Served(at, at)
	for range 14 {
		k.overload.Overloaded(at, true)
	}
}

// An answer that says that the host is overloaded makes it suspect only if few are under
// way already. This looks inside: a burst brings the limit down to few before half of the
// answers speak of overload, so that through a Transport none is ever above.
func TestManyAtATimeAreNotSuspected(t *testing.T) {
	for limit, suspect := range map[float64]bool{9: false, 5: false, 3.5: true} {
		l := learning1()
		k := l.endpointOf(kind.Key{Method: "GET", Rest: "x"}, hourIn)
		burden(k, hourIn.Add(sec/2))
		g := under(k, 9, hourIn)
		k.slow.Recall(hourIn, limit, false)
		l.overloaded(at0(sec), g, &headers.Signal{})
		if rate := l.evidence != nil && l.evidence.Since() > 0; k.overload.Suspected() != suspect || rate != suspect {
			t.Errorf("%v at a time: suspected %t, a rate is found: %t", limit, k.overload.Suspected(), rate)
		}
	}
}
