package throttle

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestOftenFailingHostIsSoonCleared: a host that fails every second request at
// random is under suspicion of being a limiter for seconds, not for minutes:
// requests that have three seconds each are not refused for most of one.
func TestOftenFailingHostIsSoonCleared(t *testing.T) {
	const perSecond, seconds, seeds = 50, 60, 6
	reached := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 3))
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent := 0
			rt := newTransport(t, testnet.Func(func(q *http.Request) (*http.Response, error) {
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				sent++
				status := 200
				if r.Float64() < 0.5 {
					status = 503
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				return testnet.Answer(q, status, nil, nil), nil
			}), Config{})
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
			t.Logf("seed %d: %d of %d", seed, sent, perSecond*seconds)
			reached += sent
		})
	}
	if share := float64(reached) / (perSecond * seconds * seeds); share < 0.55 {
		t.Errorf("%.0f %% of the requests reached the host, want 55", 100*share)
	}
}

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
		if rate := l.evidence != nil && (l.evidence.Since() > 0 || l.evidence.paced()); rate != test.rate {
			t.Errorf("%s: a rate is found: %t", test.name, rate)
		}
	}
}
