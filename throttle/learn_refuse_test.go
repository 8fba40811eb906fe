package throttle_test

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
	"github.com/weirhttp/weir/throttle"
)

// What a refusal teaches: a pause, or fewer at a time.
func TestRefusedAnswers(t *testing.T) {
	quota := headers.Signal{Throttled: true, Kind: headers.Quota}
	with := func(s headers.Signal, change func(s *headers.Signal)) headers.Signal {
		change(&s)
		return s
	}
	wait := func(s *headers.Signal) { s.RetryAfter = known(5 * sec) }
	for name, test := range map[string]struct {
		n      int // under way at once, of which one is answered
		status int
		s      headers.Signal
		paused time.Duration // all requests; negative: for some time
		kind   time.Duration // those of the kind alone
		fewer  bool          // at a time
	}{
		"a wait": {1, 429, with(quota, wait), 5 * sec, 0, false},
		"a named limit": {1, 429, with(quota, func(s *headers.Signal) {
			s.Limits = []headers.Limit{{Name: "a", Remaining: known(0.), Reset: known(7 * sec), Source: "x"}}
		}), 0, 7 * sec, false},
		"concurrency":            {3, 429, headers.Signal{Throttled: true, Kind: headers.Concurrency}, 0, 0, true},
		"overload":               {3, 503, headers.Signal{}, 0, 0, true},
		"overload with a wait":   {3, 503, with(headers.Signal{}, wait), 5 * sec, 0, true},
		"overload, says so":      {3, 429, headers.Signal{Throttled: true, Kind: headers.Overload}, -1, 0, true},
		"a bare 529":             {3, 529, headers.Signal{}, 0, 0, true},
		"a 500 is no such thing": {3, 500, headers.Signal{}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := append(make([]speech, settledIn), speech{status: test.status, Signal: test.s, after: sec}, speech{after: 10 * sec})
				tr := telling(t, throttle.Config{}, answers...)
				for range settledIn {
					mustGet(t, tr, "http://a/x")
				}
				var all sync.WaitGroup
				for range test.n {
					all.Go(func() { mustGet(t, tr, "http://a/x") })
				}
				time.Sleep(sec)
				synctest.Wait()
				pauses := make(map[string]time.Duration)
				fewer := false
				for _, l := range statsOf(t, tr).Learned {
					switch l.Kind {
					case throttle.LearnedPause:
						pauses[l.Route] = l.Wait
					case throttle.LearnedConcurrency:
						fewer = true
					}
				}
				if got := pauses[""]; got != test.paused && (test.paused >= 0 || got <= 0) {
					t.Errorf("paused for %v, want %v", got, test.paused)
				}
				if got := pauses["GET /x"]; got != test.kind {
					t.Errorf("the kind is paused for %v, want %v", got, test.kind)
				}
				if fewer != test.fewer {
					t.Errorf("fewer at a time: %t", fewer)
				}
				all.Wait()
			})
		})
	}
}

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
			}), throttle.Config{})
			throttle.Jitter(rt, rand.New(rand.NewPCG(seed, 4)).Float64)
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
