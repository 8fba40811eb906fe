package breaker_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestABurstIsNoRun: of requests that come together some fail. It does not matter
// whether their failures come first or last, without an answer or with one, or
// whether it is always the same requests that fail: the circuit stays closed. If
// all fail, it opens.
func TestABurstIsNoRun(t *testing.T) {
	const calls, every = 200, 3 // so many at once, of which one in every fails
	for name, x := range map[string]struct {
		fails   time.Duration // until a failure comes, at most; an answer takes 100 ms
		always  bool          // they fail again when they are repeated
		all     bool
		failure func(*http.Request) (*http.Response, error)
		want    breaker.State
	}{
		"failures come last":             {2 * time.Second, false, false, status(500), breaker.Closed},
		"failures come first":            {0, false, false, status(500), breaker.Closed},
		"with the answers":               {100 * time.Millisecond, false, false, status(500), breaker.Closed},
		"always the same":                {2 * time.Second, true, false, status(500), breaker.Closed},
		"always the same, at once":       {0, true, false, status(500), breaker.Closed},
		"no answer, last":                {2 * time.Second, false, false, failing(errors.New("reset")), breaker.Closed},
		"no answer, first":               {0, false, false, failing(errors.New("reset")), breaker.Closed},
		"no answer, always the same":     {2 * time.Second, true, false, failing(errors.New("reset")), breaker.Closed},
		"all fail":                       {100 * time.Millisecond, true, true, status(500), breaker.Open},
		"all fail, late":                 {2 * time.Second, true, true, status(500), breaker.Open},
		"all fail, without an answer":    {100 * time.Millisecond, true, true, failing(errors.New("reset")), breaker.Open},
		"all fail without one, and late": {2 * time.Second, true, true, failing(errors.New("reset")), breaker.Open},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				tried := map[string]bool{}
				cs := circuits(t, breaker.Config{})
				meter := cs.Meter(retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
					name := r.Header.Get("Name")
					mu.Lock()
					again := tried[name]
					tried[name] = true
					mu.Unlock()
					if bad := name != "" && (!again || x.always); bad {
						nth, _ := strconv.Atoi(name)
						testnet.Wait(r.Context(), x.fails/2+x.fails*time.Duration(nth)/(2*calls))
						return x.failure(r)
					}
					testnet.Wait(r.Context(), 100*time.Millisecond)
					return status(200)(r)
				}), retry.Config{}))
				loop, err := retry.New(meter, retry.Config{Allowance: retry.Allowance{Disable: true}})
				if err != nil {
					t.Fatal(err)
				}
				rt := cs.Door(loop)
				call := func(name string) {
					r := httptest.NewRequest("GET", site, nil)
					if name != "" {
						r.Header.Set("Name", name)
					}
					if resp, err := rt.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				}
				for range 10 { // the host is well, and known to be
					call("")
					time.Sleep(time.Second)
				}
				var wg sync.WaitGroup
				for i := range calls {
					bad := ""
					if x.all || i%every == 0 {
						bad = strconv.Itoa(i)
					}
					wg.Go(func() { call(bad) })
					time.Sleep(10 * time.Microsecond)
				}
				wg.Wait()
				want(t, cs, x.want, name)
			})
		})
	}
}
