package breaker_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestABurstIsNoRun: of requests that come together one in three fails. It does not
// matter whether the failures come first or last, without an answer or with one: the
// circuit stays closed. If all fail, it opens.
func TestABurstIsNoRun(t *testing.T) {
	const calls, every = 200, 3
	for name, x := range map[string]struct {
		fails   time.Duration // until a failure comes, at most; an answer takes 100 ms
		all     bool
		failure func(*http.Request) (*http.Response, error)
		want    breaker.State
	}{
		"failures come last":             {2 * time.Second, false, status(500), breaker.Closed},
		"failures come first":            {0, false, status(500), breaker.Closed},
		"with the answers":               {100 * time.Millisecond, false, status(500), breaker.Closed},
		"no answer, last":                {2 * time.Second, false, failing(errors.New("reset")), breaker.Closed},
		"no answer, first":               {0, false, failing(errors.New("reset")), breaker.Closed},
		"all fail":                       {100 * time.Millisecond, true, status(500), breaker.Open},
		"all fail, late":                 {2 * time.Second, true, status(500), breaker.Open},
		"all fail, without an answer":    {100 * time.Millisecond, true, failing(errors.New("reset")), breaker.Open},
		"all fail without one, and late": {2 * time.Second, true, failing(errors.New("reset")), breaker.Open},
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
					if bad := name != "" && (!again || x.all); bad {
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

// TestQuickFailuresOpen: calls that fail one after another open the circuit as soon as so
// many have failed, however quick they are and however slow the host was before, also
// if the clock shows the same time for all, and if another call is under way.
func TestQuickFailuresOpen(t *testing.T) {
	for _, x := range []struct {
		name  string
		fail  answer
		least int
	}{{"without an answer", down, 5}, {"with one", status(500), 20}} {
		for _, answers := range []time.Duration{0, time.Millisecond, time.Second} { // until there is one
			for _, fails := range []time.Duration{0, time.Nanosecond, time.Millisecond, 2 * time.Second} {
				for _, apart := range []time.Duration{0, time.Nanosecond, 50 * time.Millisecond} {
					for _, beside := range []bool{false, true} {
						name := fmt.Sprint(x.name, ", after ", answers, ", in ", fails, ", ", apart, " apart, with another call: ", beside)
						bubble(t, func(t *testing.T) {
							h := &host{answer: status(200)}
							cs := circuits(t, breaker.Config{})
							takes, slow := answers, make(chan struct{})
							rt := cs.Door(cs.Meter(retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
								if r.URL.Path == "/slow" {
									<-slow
								} else {
									time.Sleep(takes)
								}
								return h.RoundTrip(r)
							}), retry.Config{AttemptTimeout: -1})))
							defer synctest.Wait()
							defer close(slow)
							if beside {
								go get(rt, site+"slow")
								synctest.Wait()
							}
							for range 3 {
								get(rt, site)
							}
							takes = fails
							h.set(x.fail)
							for range x.least {
								want(t, cs, breaker.Closed, name)
								get(rt, site)
								time.Sleep(apart)
							}
							want(t, cs, breaker.Open, name)
						})
					}
				}
			}
		}
	}
}

// TestADeadHostHasARun: whoever calls a host that is down opens its circuit, though many
// are under way at once.
func TestADeadHostHasARun(t *testing.T) {
	for _, x := range []struct {
		fail answer
		most int // attempts beyond those that were under way
	}{{down, 15}, {status(500), 45}} {
		for _, callers := range []int{2, 5, 20, 100} {
			bubble(t, func(t *testing.T) {
				h := &host{answer: status(200)}
				cs := circuits(t, breaker.Config{})
				rt := cs.Door(cs.Meter(retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(100 * time.Millisecond)
					return h.RoundTrip(r)
				}), retry.Config{})))
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						for cs.State("a.example") == breaker.Closed {
							get(rt, site)
						}
					})
				}
				time.Sleep(10 * time.Second)
				before := h.calls.Load()
				h.set(x.fail)
				wg.Wait()
				if n := int(h.calls.Load() - before); n > 2*callers+x.most {
					t.Errorf("%d callers sent %d attempts to a dead host", callers, n)
				} else {
					t.Logf("%d callers sent %d attempts", callers, n)
				}
			})
		}
	}
}
