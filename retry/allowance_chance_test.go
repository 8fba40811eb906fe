package retry_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// flaky is a host that fails a share of all attempts at random, after a while.
type flaky struct {
	mu     sync.Mutex
	random *rand.Rand
	fails  float64
	takes  time.Duration
	made   int
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	status, takes := 200, f.takes
	if f.made++; f.random.Float64() < f.fails {
		status = 500
	}
	f.mu.Unlock()
	if err := testnet.Wait(r.Context(), takes); err != nil {
		return nil, err
	}
	return testnet.Answer(r, status, nil, nil), nil
}

// offered makes n calls, 100 a second, and returns the attempts per call and the
// share that was served.
func offered(t *testing.T, rt http.RoundTripper, f *flaky, n int) (attempts, served float64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	good, before := 0, f.made
	for range n {
		wg.Go(func() {
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if resp.StatusCode == 200 {
				good++
			}
		})
		time.Sleep(10 * time.Millisecond)
	}
	wg.Wait()
	return float64(f.made-before) / float64(n), float64(good) / float64(n)
}

// A host that fails at random gets all attempts that the user allows, however
// long it goes on, and one that is down is left alone after Tokens/14 retries.
func TestAllowanceTellsChanceFromCollapse(t *testing.T) {
	for _, p := range []float64{.1, .3, .5, .7, .8} {
		const seeds = 5
		var attempts, served float64
		for seed := range uint64(seeds) {
			bubble(t, "", func(t *testing.T) {
				f := &flaky{random: rand.New(rand.NewPCG(seed, 31)), fails: p, takes: 20 * time.Millisecond}
				a, s := offered(t, newTransport(t, f, retry.Config{}), f, 6000)
				attempts, served = attempts+a/seeds, served+s/seeds
			})
		}
		least := .97
		if p == .8 { // where now and then there are no tokens left
			least = .9
		}
		if want := 1 + p + p*p; attempts < least*want || served < least*(1-p*p*p) {
			t.Errorf("%.0f %% fail: %.3f attempts a call, want %.3f; %.3f served, want %.3f", 100*p, attempts, want, served, 1-p*p*p)
		}
	}
	bubble(t, "collapse", func(t *testing.T) {
		f := &flaky{random: rand.New(rand.NewPCG(1, 31)), fails: .5, takes: 20 * time.Millisecond}
		rt := newTransport(t, f, retry.Config{})
		offered(t, rt, f, 6000)
		f.fails = 1
		if attempts, _ := offered(t, rt, f, 1000); attempts > 1.04 {
			t.Errorf("a host that is down for 10 s: %.3f attempts a call", attempts)
		}
	})
}

// While answers take longer and longer, as those of an overloaded host do, a retry
// that succeeds pays for itself only.
func TestOverloadEarnsNoRetries(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		f := &flaky{random: rand.New(rand.NewPCG(1, 31)), takes: 20 * time.Millisecond}
		rt := newTransport(t, f, retry.Config{})
		offered(t, rt, f, 3000)
		f.fails, f.takes = .5, 200*time.Millisecond
		if attempts, _ := offered(t, rt, f, 300); attempts > 1.4 {
			t.Errorf("ten times slower: %.3f attempts a call", attempts)
		}
	})
}
