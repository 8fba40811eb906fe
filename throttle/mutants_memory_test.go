package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// Refusals that belong to one kind take its pause and its rate along, and leave
// the others free.
func TestBlameMovesThePause(t *testing.T) {
	l := learning1()
	a, b := l.kindOf(kindKey{"GET", "a"}, hourIn), l.kindOf(kindKey{"GET", "b"}, hourIn)
	refuse := func(at time.Duration) {
		g := under(a, 1, hourIn.Add(at))
		l.finish(at0(at), g, replied, 429, headers.Signal{Throttled: true, RetryAfter: known(5 * sec)})
	}
	for i := range 3 {
		at := time.Duration(i) * 10 * sec
		refuse(at)
		for j := range 8 {
			g := under(b, 1, hourIn.Add(at+sec+time.Duration(j)))
			l.finish(at0(at+2*sec), g, replied, 200, headers.Signal{})
		}
	}
	if !a.apart || a.hold == nil || a.finder == nil || b.apart {
		t.Fatalf("apart %t, hold %v", a.apart, a.hold)
	}
	if l.hold.wait(at0(20*sec)) != 0 || a.hold.wait(at0(20*sec)) < 5*sec {
		t.Errorf("all wait %v, the kind %v", l.hold.wait(at0(20*sec)), a.hold.wait(at0(20*sec)))
	}
}
