package chaintest

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestRecordOfAHostIsSmall: what the whole chain keeps of a host that was asked
// once, found well and said nothing about limits takes at most 2 KiB. Measured
// is all that the heap grew by, the tables' own part included.
func TestRecordOfAHostIsSmall(t *testing.T) {
	most := 1792.0 // some less than the promise, so that what is added is noticed
	if testnet.Race {
		most += 32 // 1780 to 1795 were seen with it
	}
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), weir.Config{}))(t)
	requests := make([]*http.Request, 100000)
	for i := range requests {
		requests[i] = get(t, fmt.Sprintf("http://h%d.example.com/v1/items", i))
	}
	before, done := heapInUse(), 0
	for _, n := range []int{10000, 100000} { // fewer would measure what else the process keeps
		for ; done < n; done++ {
			resp, err := rt.RoundTrip(requests[done])
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		size := float64(heapInUse()-before) / float64(n)
		t.Logf("%d hosts: %.0f bytes each", n, size)
		if size > most {
			t.Errorf("%d hosts: %.0f bytes each, want at most %.0f", n, size, most)
		}
	}
	if n := len(rt.Stats().Throttle.Hosts); n < 90000 { // the table's shards fill unevenly
		t.Errorf("%d hosts are kept, want 90000 or more: the others were not measured", n)
	}
	runtime.KeepAlive(requests)
}

// heapInUse is how many bytes are allocated and still reachable.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEvictionForgetsNothing: strangers, however many, do not end a pause, a
// learned limit, an open circuit, an operator's word or what was spent.
func TestEvictionForgetsNothing(t *testing.T) {
	limited := func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "h" {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"3600"}}, nil), nil
		}
		return stub(r)
	}
	spent := func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "h" {
			return testnet.Answer(r, 200, http.Header{"Ratelimit-Policy": {`"q";q=10;w=3600`}, "Ratelimit": {`"q";r=0;t=3000`}}, nil), nil
		}
		return stub(r)
	}
	broken := func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "h" {
			return testnet.Answer(r, 500, nil, nil), nil
		}
		return stub(r)
	}
	for name, tt := range map[string]struct {
		base   testnet.Func
		before int // requests to h
		tell   func(rt *weir.Transport)
		budget string
	}{
		"pause by hand":       {stub, 0, func(rt *weir.Transport) { rt.Throttle().Pause("h", time.Now().Add(time.Hour)) }, ""},
		"pause, then request": {stub, 1, func(rt *weir.Transport) { rt.Throttle().Pause("h", time.Now().Add(time.Hour)) }, ""},
		"forced open":         {stub, 0, func(rt *weir.Transport) { rt.Circuits().Force("h", breaker.Open) }, ""},
		"refused":             {limited, 1, nil, ""},
		"stated":              {spent, 1, nil, ""},
		"open":                {broken, 25, nil, ""},
		"spent":               {stub, 3, nil, "3/h burst 3"},
	} {
		for _, keys := range []int{1, 2, 5, 5000} {
			t.Run(fmt.Sprint(name, ", ", keys), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := throttle.Config{MaxKeys: keys, MaxPause: 2 * time.Hour}
					if tt.budget != "" {
						c.Default = throttle.MustParseBudget(tt.budget)
					}
					rt := must(weir.New(tt.base, weir.Config{Throttle: c, Breaker: breaker.Config{MaxOpenFor: time.Hour, OpenFor: time.Hour}}))(t)
					for range tt.before {
						if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
							resp.Body.Close()
						}
					}
					if tt.tell != nil {
						tt.tell(rt)
					}
					for i := range max(30, keys/50) {
						if resp, err := rt.RoundTrip(get(t, fmt.Sprintf("http://s%d/", i))); err == nil {
							resp.Body.Close()
						}
						time.Sleep(10 * time.Second)
					}
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					var wait *throttle.Error
					var open *breaker.Error
					if err == nil || !errors.As(err, &wait) && !errors.As(err, &open) {
						t.Errorf("%v, %v: it was forgotten", resp, err)
					}
				})
			})
		}
	}
}
