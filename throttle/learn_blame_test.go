package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// Refusals that belong to one endpoint take its pause along, and leave the others free.
func TestBlameMovesThePause(t *testing.T) {
	l := learning1()
	a, b := l.endpointOf(endpointKey{"GET", "a"}, hourIn), l.endpointOf(endpointKey{"GET", "b"}, hourIn)
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
	if !a.apart || a.cooldown == nil || a.evidence == nil || b.apart {
		t.Fatalf("apart %t, hold %v", a.apart, a.cooldown)
	}
	if l.cooldown.At(at0(20*sec)) != at0(20*sec) || a.cooldown.At(at0(20*sec)) < at0(25*sec) {
		t.Errorf("all wait %v, the kind %v", l.cooldown.At(at0(20*sec)), a.cooldown.At(at0(20*sec)))
	}
}

// An endpoint that has limits of its own takes the pause along; proof that a host is no
// limiter ends it.
func TestPausesMove(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	l.cooldown = askedUntil(at0(9 * sec))
	l.evidence = believing(10, sec, 1)
	l.blame = new(blame)
	for i := range 3 {
		for range 4 * i {
			l.blame.good(l.endpointOf(endpointKey{"GET", "y"}, hourIn), hourIn.Add(1))
		}
		l.blame.refused(l, k, hourIn, false)
	}
	if !k.apart || k.cooldown.Opens() != at0(9*sec) || k.evidence == nil {
		t.Errorf("%+v", k.cooldown)
	}
	if l.cooldown.At(at0(0)) != at0(0) || l.evidence.believes() {
		t.Errorf("the others: %+v", l.cooldown)
	}
	l.cooldown, k.evidence = pausedUntil(at0(9*sec)), believing(10, sec, 1)
	suspect(k, hourIn)
	for range 16 + 3 { // the first sixteen do not count, and a fourth proves it
		k.overload.Heard(hourIn.Add(sec), hourIn, attribution.Reply{Busy: true})
	}
	l.finish(at0(2*sec), under(k, 1, hourIn.Add(sec)), replied, 503, headers.Signal{})
	k.slow.Absolve() // of the overload itself
	if l.cooldown.At(at0(2*sec)) != at0(2*sec) || k.cooldown.At(at0(2*sec)) != at0(2*sec) || k.evidence.believes() {
		t.Errorf("no limiter: %+v, %+v", l.cooldown, k.cooldown)
	}
	n := 0
	if l.restrictions(at0(2*sec), func(c cause, _ time.Duration) { n++ }); n != 0 {
		t.Errorf("%d restrictions", n)
	}
	k.evidence, l.evidence = believing(.5, sec, 1), believing(.5, sec, 1)
	if l.restrictions(at0(2*sec), func(c cause, _ time.Duration) { n++ }); n != 2 {
		t.Errorf("%d restrictions of two rates", n)
	}
}

// What is served of an endpoint that is refused does not tell that it has limits of its own,
// and once another is refused soon after, it has none.
func TestBlame(t *testing.T) {
	for _, others := range []bool{true, false} {
		l := learning1()
		a, b := l.endpointOf(endpointKey{"GET", "a"}, hourIn), l.endpointOf(endpointKey{"GET", "b"}, hourIn)
		l.blame = new(blame)
		for range 3 {
			for range 8 {
				if l.blame.good(a, hourIn.Add(sec)); others {
					l.blame.good(b, hourIn.Add(sec))
				}
			}
			l.blame.refused(l, a, hourIn, false)
		}
		if a.apart != others || b.apart {
			t.Errorf("others served %t: apart %t, the other %t", others, a.apart, b.apart)
		}
		if l.blame.refused(l, b, hourIn.Add(59*sec), false); a.apart {
			t.Error("another kind is refused as well, soon after: a common limit")
		}
	}
	var none *blame
	none.good(&endpoint{}, hourIn) // nobody was refused
}
