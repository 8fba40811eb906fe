package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1/s"), MaxQueue: 3})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { l.Take(t.Context(), "k", nil) })
		}
		synctest.Wait()
		_, err = l.Take(t.Context(), "k", nil)
		var e *throttle.Error
		if !errors.As(err, &e) || e.Reason != throttle.QueueFull || e.RetryAfter != 4*time.Second {
			t.Errorf("got %v, %+v, want a full queue and 4s", err, e)
		}
		if _, err := l.Take(t.Context(), "other", nil); err != nil {
			t.Errorf("another key: %v", err)
		}
		wg.Wait()
	})
}

// MaxQueue bounds those that wait for a limit. A burst to a host that is new waits for its
// slow start, and none of it is refused, unless MaxQueue says so or the host refused a call.
func TestQueueOfASlowStartIsBounded(t *testing.T) {
	const usual, more, first = 10000, 50, 4 // first at a time
	for _, test := range []struct {
		name     string
		calls    int
		maxQueue int
		budget   string
		refuses  bool // the host refuses the first call of all
		full     int  // calls that find the queue full
	}{
		{"new host", usual + more, 0, "", false, 0},
		{"new host, and MaxQueue is set", more, 10, "", false, more - 10 - first},
		{"new host that has refused", usual + more, 0, "", true, more},
		{"new host, and a budget", usual + more, 0, "1000/s burst 1", false, more - 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			c := throttle.Config{MaxQueue: test.maxQueue}
			if test.budget != "" {
				c.Default = throttle.MustParseBudget(test.budget)
			}
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if calls.Add(1) == 1 && test.refuses {
					return testnet.Answer(r, 429, http.Header{"Retry-After": {"5"}}, nil), nil
				}
				time.Sleep(100 * time.Millisecond)
				return testnet.Answer(r, 200, nil, nil), nil
			}), c)
			if test.refuses {
				mustGet(t, tr, "http://h/")
			}
			var full, failed atomic.Int64
			var wg sync.WaitGroup
			for range test.calls {
				wg.Go(func() {
					resp, err := tr.RoundTrip(httptest.NewRequest("GET", "http://h/", nil).WithContext(t.Context()))
					var e *throttle.Error
					switch {
					case err == nil:
						resp.Body.Close()
					case errors.As(err, &e) && e.Reason == throttle.QueueFull:
						full.Add(1)
					default:
						failed.Add(1)
					}
				})
			}
			wg.Wait()
			if int(full.Load()) != test.full || failed.Load() > 0 {
				t.Errorf("%s: %d of %d calls found the queue full, want %d; %d failed otherwise", test.name, full.Load(), test.calls, test.full, failed.Load())
			}
		})
	}
}

// TestKeysAreBounded: a million keys touched once each stay within MaxKeys, those
// with something spent are not forgotten, newcomers share one account.
func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("2/h burst 2"), MaxKeys: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			for range 2 {
				if !l.Try(strconv.Itoa(i), nil).Allowed {
					t.Fatal("refused")
				}
			}
		}
		n := 0
		for i := 100; i < 10000; i++ {
			if l.Try(strconv.Itoa(i), nil).Allowed {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of the newcomers go, want 2: they share one account", n)
		}
		for i := range 100 {
			if l.Try(strconv.Itoa(i), nil).Allowed {
				t.Fatalf("key %d was forgotten with its hour not over", i)
			}
		}
		time.Sleep(2 * time.Hour)
		for i := range 10000 {
			l.Try("new"+strconv.Itoa(i), nil)
		}
		if n, _ := throttle.KeysKept(l); n > 100 {
			t.Errorf("%d keys kept, want at most 100", n)
		}
	})
}

// TestHostsBeyondMaxKeysKeepTheirBudgets: the overflow has one account for each
// set of budgets, so that no configured limit is loosened.
func TestHostsBeyondMaxKeysKeepTheirBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{
			MaxKeys: 3, MaxWait: -1, DisableLearning: true,
			Default: throttle.MustParseBudget("1/h"),
			Budgets: map[string]throttle.Budget{"*.x": throttle.MustParseBudget("2/h burst 2"), "named": throttle.MustParseBudget("3/h burst 3")},
		})
		n := make(map[string]int)
		for i := range 300 {
			for _, host := range []string{"a" + strconv.Itoa(i) + ".x", "b" + strconv.Itoa(i)} {
				if _, err := get(t, t.Context(), tr, "http://"+host); err == nil {
					n[host[:1]]++
				}
			}
		}
		for range 10 {
			if _, err := get(t, t.Context(), tr, "http://named"); err == nil {
				n["named"]++
			}
		}
		// named, two others of their own, then 2 for *.x and 1 for the rest.
		if n["a"]+n["b"] > 2*2+3 || n["named"] != 3 {
			t.Errorf("granted %v, want 3 for named and at most 7 for all others", n)
		}
	})
}

func TestAGrantAllocatesNothing(t *testing.T) {
	for _, test := range []struct {
		budget string
		cost   throttle.Cost
	}{
		{"1000000000/s", nil},
		{"1000000000/s burst 1000000000", nil},
		{"1000000000/s bucket 1000000000", nil},
		{"1000000000/s, 2000000000/h burst 2000000000, 1000000000 tokens/s", throttle.Cost{"tokens": 3}},
	} {
		l := newLimiter(t, test.budget)
		for what, f := range map[string]func(){
			"Take": func() {
				if _, err := l.Take(context.Background(), "k", test.cost); err != nil {
					t.Error(err)
				}
			},
			"Try": func() {
				if !l.Try("k", test.cost).Allowed {
					t.Error("refused")
				}
			},
		} {
			if n := testing.AllocsPerRun(2000, f); n != 0 {
				t.Errorf("%s of %s: %v allocations, want 0", what, test.budget, n)
			}
		}
	}
}

// TestKeysAreSmall: a key with one plain rate takes at most 300 bytes.
func TestKeysAreSmall(t *testing.T) {
	const n = 20000
	l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("100/m"), MaxKeys: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user-" + strconv.Itoa(i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, k := range keys {
		l.Try(k, nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	size := float64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%.0f bytes a key", size)
	if size > 300 {
		t.Errorf("%.0f bytes a key, want at most 300", size)
	}
	runtime.KeepAlive(l)
}

// Every pattern that matches applies, also far beyond 64.
func TestManyRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budgets := map[string]throttle.Budget{"a": throttle.MustParseBudget("1000/s burst 1000")}
		for i := range 200 {
			budgets["POST a/r"+strconv.Itoa(i)] = throttle.MustParseBudget("1/h")
		}
		tr := newTransport(t, newBase(nil), throttle.Config{Budgets: budgets, MaxWait: -1, DisableLearning: true})
		for i := range 200 {
			for n := range 2 {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a/r"+strconv.Itoa(i), testnet.NewBody("x"))
				_, err := tr.RoundTrip(r)
				if (err != nil) != (n == 1) {
					t.Fatalf("route %d, request %d: %v", i, n, err)
				}
			}
		}
	})
}

// TestRoutesOfHostsBeyondMaxKeys: in the overflow too, a host's routes count.
func TestRoutesOfHostsBeyondMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{
			MaxKeys: 1, MaxWait: -1, DisableLearning: true,
			Budgets: map[string]throttle.Budget{"*.x": throttle.MustParseBudget("100/h burst 100"), "*.z.x/y": throttle.MustParseBudget("1/h")},
		})
		for _, step := range []struct {
			url  string
			goes bool
		}{
			{"http://first.x/", true}, {"http://a.x/y", true}, {"http://a.x/y", true},
			{"http://b.z.x/y", true}, {"http://b.z.x/y", false}, {"http://b.z.x/", true}, {"http://a.x/y", true},
		} {
			if _, err := get(t, t.Context(), tr, step.url); (err == nil) != step.goes {
				t.Errorf("%s: got %v, goes should be %v", step.url, err, step.goes)
			}
		}
	})
}

// The figures of what is idle, and of what is not.
func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1/m"), MaxKeys: 2})
		if err != nil {
			t.Fatal(err)
		}
		try := func(key string) bool { return l.Try(key, nil).Allowed }
		if !try("a") || !try("b") || !try("c") || try("d") {
			t.Error("beyond two keys newcomers share one")
		}
		time.Sleep(time.Minute)
		if !try("c") || !try("d") || !try("e") || try("c") {
			t.Error("two keys that were idle had to make room")
		}
	})
}

// What a pool keeps per partition is bounded.
func TestPartitionsOfAPoolAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{MaxKeys: 2, Default: throttle.MustParseBudget("100/s, pool x"),
			Partition: func(r *http.Request) string { return r.URL.Path }})
		for _, path := range []string{"a", "b", "c", "d", "e"} {
			mustGet(t, tr, "http://h/"+path)
		}
		if n := throttle.PoolsKept(tr); n > 3 {
			t.Errorf("%d partitions of the pool are kept, want 2 and one that the others share", n)
		}
	})
}

// The runtime gives out memory by sizes, of which 576 is one, and takes 8 bytes of
// it: with more, each request costs 640.
func TestAttemptSize(t *testing.T) {
	if n := throttle.AttemptSize; n > 568 {
		t.Errorf("%d bytes", n)
	}
}

func TestManyNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			n++
			name := fmt.Sprintf("limit-%d", n)
			return testnet.Answer(r, 200, http.Header{
				"Ratelimit-Policy": {fmt.Sprintf(`"%s";q=100;w=60`, name)}, "Ratelimit": {fmt.Sprintf(`"%s";r=50;t=60`, name)},
			}, nil), nil
		}), throttle.Config{})
		for i := range 3000 {
			mustGet(t, rt, fmt.Sprintf("http://h/%d/x", i)).Body.Close()
		}
		if _, limits, kinds := throttle.LearnedKept(rt, "h"); limits > throttle.MostQuotas || kinds > throttle.MostKinds {
			t.Errorf("%d limits and %d kinds are kept, want at most %d and %d", limits, kinds, throttle.MostQuotas, throttle.MostKinds)
		}
	})
}

func TestManyCredentialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, newBase(nil), throttle.Config{})
		for i := range 1000 {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://h/v1", nil)
			r.Header.Set("Authorization", "Bearer "+strconv.Itoa(i))
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if n, _, _ := throttle.LearnedKept(rt, "h"); n > throttle.MostCredentials {
			t.Errorf("%d credentials are kept, want at most %d", n, throttle.MostCredentials)
		}
	})
}
