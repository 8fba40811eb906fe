package throttle

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"

	"github.com/weirhttp/weir/internal/trip"
)

// TestOftenFailingHostIsSoonCleared: a host that fails every second request at
// random is under suspicion of being a limiter for seconds, not for minutes:
// requests that have three seconds each are not refused for most of one.
func TestOftenFailingHostIsSoonCleared(t *testing.T) {
	const perSecond, seconds, seeds = 50, 60, 6
	reached := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 3))
		learnRun(t, Config{}, func(_ *http.Request, now time.Time) *http.Response {
			if r.Float64() < 0.5 {
				return reply(503)
			}
			return reply(200)
		}, func(t *testing.T, rt *Transport, s *server) {
			rt.learning.terms.jitter = rand.New(rand.NewPCG(seed, 4)).Float64
			var wg sync.WaitGroup
			for range perSecond * seconds {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					q, _ := http.NewRequestWithContext(ctx, "GET", "http://h/v1", nil)
					if resp, err := rt.RoundTrip(q); err == nil {
						resp.Body.Close()
					}
				})
				time.Sleep(time.Second / perSecond)
			}
			wg.Wait()
			t.Logf("seed %d: %d of %d", seed, s.good+s.refused, perSecond*seconds)
			reached += s.good + s.refused
		})
	}
	if share := float64(reached) / (perSecond * seconds * seeds); share < 0.55 {
		t.Errorf("%.0f %% of the requests reached the host, want 55", 100*share)
	}
}

// TestFailedProbesShowNoRate: a circuit that probes a host that fails often
// asks as seldom as it likes. That is not taken for the rate which the host
// allows, as it would be if these were requests like others.
func TestFailedProbesShowNoRate(t *testing.T) {
	for _, probes := range []bool{false, true} {
		n := 0
		learnRun(t, Config{}, func(r *http.Request, _ time.Time) *http.Response {
			trip.From(r.Context()).Probe = probes
			if n++; n%3 != 0 {
				return reply(503)
			}
			return reply(200)
		}, func(t *testing.T, rt *Transport, _ *server) {
			paced := false
			for range 60 {
				one(t, rt, "http://h/v1")
				time.Sleep(100 * time.Millisecond)
				paced = paced || strings.Contains(restrictionsOf(rt), "found by its refusals")
			}
			if paced == probes {
				t.Errorf("probes %t: paced %t", probes, paced)
			}
		})
	}
}

// TestWhoIsSparedAsALimiter: a 503 that says no more may be a limiter's if the host has
// just served somebody, and few have asked in vain since.
func TestWhoIsSparedAsALimiter(t *testing.T) {
	for _, test := range []struct {
		name   string
		k      kind
		pauses bool
		spares bool
	}{
		{"it has just served", kind{served: hourIn.Add(-briefly + 1)}, false, true},
		{"a second ago", kind{served: hourIn.Add(-briefly)}, false, false},
		{"it never served", kind{}, false, false},
		{"only pauses are learned", kind{served: hourIn}, true, false},
		{"some asked in vain", kind{served: hourIn, vain: spared - 1}, false, true},
		{"one more did", kind{served: hourIn, vain: spared}, false, false},
		{"it is known to be none", kind{served: hourIn, suspect: &suspect{not: at0(1)}}, false, false},
		{"it was", kind{served: hourIn, suspect: &suspect{not: at0(0)}}, false, true},
	} {
		test.k.learner = learning1()
		test.k.learner.terms.pausesOnly = test.pauses
		if got := test.k.spares(hourIn); got != test.spares {
			t.Errorf("%s: spared %t", test.name, got)
		}
	}
	k := kind{heard503: hourIn}
	for _, sent := range []instant{hourIn, hourIn.Add(1), hourIn.Add(2)} { // the last two in one burst
		k.note503(hourIn.Add(sec), sent)
	}
	if k.vain != 1 {
		t.Errorf("%d asked in vain, want 1: those of one burst are one", k.vain)
	}
}

// A host that serves some and refuses most, however few are under way, limits.
func TestLimitersThatSayTheyAreOverloaded(t *testing.T) {
	for _, test := range []struct {
		name            string
		k               kind
		serves, limiter bool
	}{
		{"half are refused", kind{busy: 0.5, served: hourIn.Add(-sec + 1), streak: 100}, true, true},
		{"fewer", kind{busy: 0.49, served: hourIn.Add(-sec + 1)}, true, false},
		{"it never served", kind{busy: 1}, false, false},
		{"a second ago", kind{busy: 1, served: hourIn.Add(-sec), streak: 5}, false, false},
		{"with few asked since", kind{busy: 1, served: hourIn.Add(-sec), streak: 4}, true, true},
		{"five seconds ago", kind{busy: 1, served: hourIn.Add(-5 * sec), streak: 4}, false, false},
		{"nearly", kind{busy: 1, served: hourIn.Add(-5*sec + 1), streak: 4}, true, true},
		{"it is known to be none", kind{busy: 1, served: hourIn, suspect: &suspect{not: at0(1)}}, true, false},
		{"it was", kind{busy: 1, served: hourIn, suspect: &suspect{not: at0(0)}}, true, true},
	} {
		if got := test.k.serves(at0(0)); got != test.serves {
			t.Errorf("%s: serves %t", test.name, got)
		}
		if got := test.k.limiter(at0(0)); got != test.limiter {
			t.Errorf("%s: limits %t", test.name, got)
		}
	}
}

// Of sixteen answers at the rate found, after sixteen that do not count, four that
// say that the host is overloaded prove it to be no limiter, at once.
func TestSuspectsAreJudged(t *testing.T) {
	var none *suspect
	if none.suspected() || none.judge(at0(0), true) || new(suspect).judge(at0(0), true) {
		t.Error("nobody is suspected")
	}
	for _, busy := range []int{3, 4} {
		s := none.begin(at0(sec))
		for i := range 16 {
			if s.judge(at0(sec), true) {
				t.Fatalf("judged by answer %d", i)
			}
		}
		for i := range 16 {
			proved := s.judge(at0(2*sec), i < busy)
			if proved != (i == 3 && busy == 4) {
				t.Fatalf("%d of sixteen: proved %t by answer %d", busy, proved, i)
			}
		}
		if s.suspected() != (busy == 3) || s.answers != 0 || s.busy != 0 {
			t.Errorf("%d of sixteen: %+v", busy, s)
		}
		if busy == 4 && s.not != at0(2*sec+forgetRate) {
			t.Errorf("none until %v", s.not)
		}
		if again := s.begin(at0(3 * sec)); again != s || s.answers != -16 || s.since != at0(3*sec) {
			t.Errorf("suspected again: %+v", s)
		}
	}
}

// An answer that says that the host is overloaded makes it suspect if few are
// under way already; then the rate is found.
func TestOverloadedOrLimited(t *testing.T) {
	for _, test := range []struct {
		name    string
		limit   float64 // at a time, before
		s       headers.Signal
		change  func(l *learner, k *kind)
		suspect bool
		rate    bool
		what    causeKind
	}{
		{"many at a time", 9, headers.Signal{}, func(*learner, *kind) {}, false, false, causeFlight},
		{"five", 5, headers.Signal{}, func(*learner, *kind) {}, false, false, causeFlight},
		{"three", 3.5, headers.Signal{}, func(*learner, *kind) {}, true, true, causeHold},
		{"with a wait", 3.5, headers.Signal{RetryAfter: known(sec)}, func(*learner, *kind) {}, true, false, causeHold},
		{"many, but suspected", 9, headers.Signal{}, func(_ *learner, k *kind) { k.suspect = k.suspect.begin(at0(0)) }, true, true, causeHold},
		{"suspected, and serves none", 9, headers.Signal{}, func(_ *learner, k *kind) { k.suspect, k.served = k.suspect.begin(at0(0)), 0 }, true, false, causeFlight},
		{"only pauses are learned", 2, headers.Signal{}, func(l *learner, _ *kind) { l.terms.pausesOnly = true }, false, false, causeFlight},
		{"no limit", 0, headers.Signal{}, func(_ *learner, k *kind) { k.slow.free = true }, false, false, causeFlight},
	} {
		l := learning1()
		k := l.kindOf(kindKey{"GET", "x"}, hourIn)
		k.busy, k.served = 0.9, hourIn.Add(sec/2)
		g := under(k, 9, hourIn)
		k.slow.limit = test.limit
		test.change(l, k)
		got := l.overloaded(at0(sec), g, test.s)
		if got.what != test.what || k.suspect.suspected() != test.suspect || k.streak != 1 || k.busy != 0.9+1.0/16 {
			t.Errorf("%s: %v, suspected %t, streak %d, busy %v", test.name, got.what, k.suspect.suspected(), k.streak, k.busy)
		}
		if rate := l.evidence != nil && (l.evidence.Since() > 0 || l.evidence.paced()); rate != test.rate {
			t.Errorf("%s: a rate is found: %t", test.name, rate)
		}
	}
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	k.streak = manyAnswers
	if l.overloaded(at0(sec), under(k, 9, hourIn), headers.Signal{}); k.streak != manyAnswers {
		t.Errorf("%d in a row are counted", k.streak)
	}
}
