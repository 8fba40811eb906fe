package throttle

import (
	"testing"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// suspect makes k's host seem a limiter, which served somebody then and refuses most.
func suspect(k *endpoint, at instant) {
	burden(k, at)
	k.overload.Limits(at, true, true)
}

// burden lets k be answered well once, and then that the host is overloaded.
func burden(k *endpoint, at instant) {
	k.overload.Served(at, at)
	for range 14 {
		k.overload.Overloaded(at, true)
	}
}

// An answer that says that the host is overloaded makes it suspect if few are
// under way already; then the rate is found.
func TestOverloadedOrLimited(t *testing.T) {
	for _, test := range []struct {
		name    string
		limit   float64 // at a time, before
		s       headers.Signal
		change  func(l *learner, k *endpoint)
		suspect bool
		rate    bool
		what    causeKind
	}{
		{"many at a time", 9, headers.Signal{}, func(*learner, *endpoint) {}, false, false, causeFlight},
		{"five", 5, headers.Signal{}, func(*learner, *endpoint) {}, false, false, causeFlight},
		{"three", 3.5, headers.Signal{}, func(*learner, *endpoint) {}, true, true, causeCooldown},
		{"with a wait", 3.5, headers.Signal{RetryAfter: known(sec)}, func(*learner, *endpoint) {}, true, true, causeCooldown},
		{"many, but suspected", 9, headers.Signal{}, func(_ *learner, k *endpoint) { suspect(k, hourIn.Add(sec/2)) }, true, true, causeCooldown},
		{"suspected, and serves none", 9, headers.Signal{}, func(_ *learner, k *endpoint) { suspect(k, hourIn.Add(-10*sec)) }, true, false, causeFlight},
		{"only pauses are learned", 2, headers.Signal{}, func(l *learner, _ *endpoint) { l.terms.pausesOnly = true }, false, false, causeFlight},
		{"no limit", 0, headers.Signal{}, func(_ *learner, k *endpoint) { k.slow.Stated(); k.slow.Answered(hourIn, 0) }, false, false, causeFlight},
	} {
		l := learning1()
		k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
		burden(k, hourIn.Add(sec/2))
		g := under(k, 9, hourIn)
		k.slow.Recall(hourIn, test.limit, false)
		test.change(l, k)
		got := l.overloaded(at0(sec), g, test.s)
		if got.what != test.what || k.overload.Suspected() != test.suspect {
			t.Errorf("%s: %v, suspected %t", test.name, got.what, k.overload.Suspected())
		}
		if rate := l.evidence != nil && l.evidence.Since() > 0; rate != test.rate {
			t.Errorf("%s: a rate is found: %t", test.name, rate)
		}
	}
}

// Proof that a host is no limiter ends the pauses of all its kinds, and what was found.
func TestWhoIsNoLimiterPausesNobody(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	k.apart, k.evidence, k.cooldown = true, believing(10, sec, 1), pausedUntil(at0(9*sec))
	l.cooldown = pausedUntil(at0(9 * sec))
	suspect(k, hourIn)
	for range 16 + 3 { // the first sixteen do not count, and a fourth proves it
		k.overload.Heard(hourIn.Add(sec), hourIn, attribution.Reply{Busy: true})
	}
	l.finish(at0(2*sec), under(k, 1, hourIn.Add(sec)), replied, 503, headers.Signal{})
	if l.cooldown.At(at0(2*sec)) != at0(2*sec) || k.cooldown.At(at0(2*sec)) != at0(2*sec) || k.evidence.believes() {
		t.Errorf("all are paused %+v, the kind %+v; a limit is believed in: %t", l.cooldown, k.cooldown, k.evidence.believes())
	}
}

// A refusal for requests at a time answers whoever asks whether a pause is over.
func TestARefusalOfOneTooManyEndsAPause(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	l.cooldown, k.cooldown = pausedUntil(at0(0)), pausedUntil(at0(0))
	l.finish(at0(sec), under(k, 3, hourIn), replied, 429, headers.Signal{Throttled: true, Kind: headers.Concurrency})
	if l.cooldown.Opens() != 0 || k.cooldown.Opens() != 0 || k.slow.Allowed() != 2 {
		t.Errorf("%+v, %+v, %v at a time", l.cooldown, k.cooldown, k.slow.Allowed())
	}
}
