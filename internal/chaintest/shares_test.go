package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// A counter is a fixed window of one limit.
type counter struct {
	size, used int
	per        time.Duration
	ends       time.Time
}

// A perName is a server that counts requests by what of returns for them, in
// windows as make makes them, and states what is left under one name.
type perName struct {
	mu       sync.Mutex
	of       func(r *http.Request) string
	make     func(name string) *counter
	counters map[string]*counter
	delay    func() time.Duration // of an answer on its way back; nil: 20 ms
	after    bool                 // refusals say when to come back, too
	refused  int
	hits     map[string]int
}

func (s *perName) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	now, name := time.Now(), s.of(r)
	c := s.counters[name]
	if c == nil {
		c = s.make(name)
		s.counters[name] = c
	}
	if !now.Before(c.ends) {
		c.used, c.ends = 0, now.Add(c.per)
	}
	status := 200
	if c.used++; c.used > c.size {
		c.used, status = c.size, 429
		s.refused++
	}
	s.hits[r.URL.Path]++
	h := http.Header{
		"X-Rate-Limit-Limit": {strconv.Itoa(c.size)}, "X-Rate-Limit-Remaining": {strconv.Itoa(c.size - c.used)},
		"X-Rate-Limit-Reset": {strconv.FormatInt(c.ends.Unix()+1, 10)},
	}
	if s.after && status == 429 {
		h.Set("Retry-After", strconv.Itoa(int(c.ends.Sub(now).Seconds())+1))
	}
	delay := 20 * time.Millisecond
	if s.delay != nil {
		delay = s.delay()
	}
	s.mu.Unlock()
	time.Sleep(delay)
	return testnet.Answer(r, status, h, nil), nil
}

// shared runs f over a chain with defaults above s.
func shared(t *testing.T, name string, s *perName, f func(t *testing.T, rt http.RoundTripper)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(26 * 365 * 24 * time.Hour)
			s.counters, s.hits = map[string]*counter{}, map[string]int{}
			f(t, must(weir.New(s, weir.Config{}))(t))
		})
	})
}

// visit sends one GET and returns its status, 0 if there was no answer, and how
// long it took.
func visit(t *testing.T, rt http.RoundTripper, path string) (status int, took time.Duration) {
	t.Helper()
	start := time.Now()
	resp, err := rt.RoundTrip(get(t, "http://api.example.com"+path))
	if err == nil {
		resp.Body.Close()
		status = resp.StatusCode
	}
	return status, time.Since(start)
}

// TestASpentEndpointDoesNotHoldUpItsSiblings: X and Okta count each endpoint for
// itself, below one first segment and under one name. Those that have something
// left go at once, also many together.
func TestASpentEndpointDoesNotHoldUpItsSiblings(t *testing.T) {
	endpoint := func(r *http.Request) string { return strings.TrimRight(r.URL.Path, "0123456789") }
	for _, test := range []struct {
		name           string
		spend, sibling func(i int) string
		known          bool // the sibling was called before
	}{
		{"X", func(int) string { return "/2/users/me" }, func(int) string { return "/2/tweets/search/recent" }, false},
		{"Okta", func(int) string { return "/api/v1/users" }, func(int) string { return "/api/v1/groups" }, false},
		{"ids", func(i int) string { return fmt.Sprint("/2/users/", 1000+i) }, func(i int) string { return fmt.Sprint("/2/tweets/", 2000+i) }, false},
		{"known before", func(int) string { return "/2/users/me" }, func(int) string { return "/2/tweets/search/recent" }, true},
		{"segments", func(int) string { return "/users" }, func(int) string { return "/groups" }, false},
	} {
		for _, callers := range []int{1, 10} {
			s := &perName{of: endpoint, make: func(name string) *counter {
				if strings.HasPrefix(name, strings.TrimRight(test.spend(0), "0123456789")) {
					return &counter{size: 15, per: 15 * time.Minute}
				}
				return &counter{size: 900, per: 15 * time.Minute}
			}}
			shared(t, fmt.Sprint(test.name, callers), s, func(t *testing.T, rt http.RoundTripper) {
				if test.known {
					visit(t, rt, test.sibling(0))
				}
				for i := range 15 {
					if status, _ := visit(t, rt, test.spend(i)); status != 200 {
						t.Fatalf("%s: status %d within the limit, want 200", test.name, status)
					}
				}
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for i := range 10 {
							if status, took := visit(t, rt, test.sibling(10*c+i)); status != 200 || took > 200*time.Millisecond {
								t.Errorf("%s, %d callers: a sibling got %d after %v, want 200 at once", test.name, callers, status, took)
							}
						}
					})
				}
				wg.Wait()
				if status, took := visit(t, rt, test.spend(99)); status != 0 || took > time.Second || s.refused > 0 {
					t.Errorf("%s: the spent one got %d after %v with %d refusals, want an error at once and none", test.name, status, took, s.refused)
				}
			})
		}
	}
}

// TestLimitsPerResource: a server that counts each resource for itself serves all
// calls within its limits, in whatever order and at whatever depth they come.
func TestLimitsPerResource(t *testing.T) {
	for _, form := range []string{"/%d", "/items/%d", "/items/%d/parts", "/v1/name%dx", "/v1/name%dx/parts"} {
		for _, shape := range []struct{ resources, calls int }{{30, 10}, {100, 3}, {300, 1}, {10, 30}} {
			for _, order := range []string{"one after the other", "in turn", "side by side"} {
				s := &perName{of: func(r *http.Request) string { return r.URL.Path }, make: func(string) *counter {
					return &counter{size: shape.calls, per: 15 * time.Minute}
				}}
				shared(t, fmt.Sprint(form[1:], " ", shape, " ", order), s, func(t *testing.T, rt http.RoundTripper) {
					start := time.Now()
					var lost atomic.Int64
					call := func(i int) {
						if status, _ := visit(t, rt, fmt.Sprintf(form, 100+i)); status != 200 {
							lost.Add(1)
						}
					}
					var wg sync.WaitGroup
					switch order {
					case "one after the other":
						for i := range shape.resources * shape.calls {
							call(i / shape.calls)
						}
					case "in turn":
						for i := range shape.resources * shape.calls {
							call(i % shape.resources)
						}
					case "side by side":
						for c := range 10 {
							wg.Go(func() {
								for i := c; i < shape.resources*shape.calls; i += 10 {
									call(i % shape.resources)
								}
							})
						}
					}
					wg.Wait()
					if took := time.Since(start); lost.Load() > 0 || s.refused > 0 || took > 20*time.Second {
						t.Errorf("%s, %d calls to each of %d %s: %d lost, %d refused, %v; want none in 12s", form, shape.calls, shape.resources, order, lost.Load(), s.refused, took)
					}
				})
			}
		}
	}
}

// TestLimitsPerResourceInAnyOrder: all calls are also served if answers overtake one another, so
// that what they say is left rises and falls.
func TestLimitsPerResourceInAnyOrder(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 1))
		resources, callers, calls, spread := 2+r.IntN(15), 1+r.IntN(3), 5+r.IntN(60), 5+r.IntN(100)
		s := &perName{of: func(r *http.Request) string { return r.URL.Path }, make: func(string) *counter {
			return &counter{size: calls, per: 15 * time.Minute}
		}, delay: func() time.Duration { return time.Duration(1+r.IntN(spread)) * time.Millisecond }}
		shared(t, fmt.Sprint(seed), s, func(t *testing.T, rt http.RoundTripper) {
			var lost atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			for c := range resources * callers {
				wg.Go(func() {
					for i := c / resources; i < calls; i += callers {
						if status, _ := visit(t, rt, fmt.Sprintf("/%d", 100+c%resources)); status != 200 {
							lost.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if took, most := time.Since(start), 30*time.Second; lost.Load() > 0 || s.refused > 0 || took > most {
				t.Errorf("%d calls to each of %d by %d callers, answers within %d ms: %d lost, %d refused, %v; want none, within %v",
					calls, resources, callers, spread, lost.Load(), s.refused, took, most)
			}
		})
	}
}

// TestARefusalOfOneResourceHoldsUpNoOther: when resources are known to be counted
// one by one, a refusal that says that one of them is spent is that one's.
func TestARefusalOfOneResourceHoldsUpNoOther(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := &perName{of: func(r *http.Request) string { return r.URL.Path }, after: after, make: func(string) *counter {
			return &counter{size: 20, per: 15 * time.Minute}
		}}
		shared(t, fmt.Sprint(after), s, func(t *testing.T, rt http.RoundTripper) {
			for i := range 40 {
				visit(t, rt, fmt.Sprint("/items/", i%10))
			}
			s.mu.Lock()
			s.counters["/items/3"].used = 20 // by somebody else
			s.mu.Unlock()
			if status, took := visit(t, rt, "/items/3"); status != 429 || took > time.Second {
				t.Errorf("the spent one got %d after %v, want 429 at once", status, took)
			}
			for i := range 100 {
				if path := fmt.Sprint("/items/", i%10); i%10 != 3 {
					if status, took := visit(t, rt, path); status != 200 || took > 100*time.Millisecond {
						t.Fatalf("%s got %d after %v, want 200 at once", path, status, took)
					}
				}
			}
			if _, took := visit(t, rt, "/items/3"); took > time.Second || s.refused > 1 {
				t.Errorf("a call to the spent one ended after %v, and there were %d refusals; want it to fail at once, without being sent again", took, s.refused)
			}
		})
	}
}

// TestPathsAreBounded: what is kept of a server that has a limit for each of many
// paths does not grow with them.
func TestPathsAreBounded(t *testing.T) {
	for _, one := range []bool{false, true} {
		s := &perName{of: func(r *http.Request) string {
			if one {
				return ""
			}
			return r.URL.Path
		}, make: func(string) *counter { return &counter{size: 1 << 20, per: time.Hour} }}
		shared(t, fmt.Sprint(one), s, func(t *testing.T, rt http.RoundTripper) {
			heap := func() int64 {
				clear(s.counters)
				clear(s.hits)
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			var before int64
			for i := range 12000 {
				if i == 2000 {
					before = heap()
				}
				visit(t, rt, fmt.Sprintf("/p%d/name%dx/parts", i%100, i))
			}
			if grown := heap() - before; grown > 1<<20 {
				t.Errorf("10000 more paths take %d bytes more, want at most 1 MiB", grown)
			}
			runtime.KeepAlive(rt)
		})
	}
}
