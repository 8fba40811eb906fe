package retry_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// stub answers 200 without allocating.
func stub() testnet.Func {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	return func(*http.Request) (*http.Response, error) { return resp, nil }
}

// asking is a stub that looks at the context of its requests, as a base does that
// does not wait for its end.
func asking() testnet.Func {
	answer := stub()
	return func(r *http.Request) (*http.Response, error) {
		if ctx := r.Context(); ctx.Err() != nil || ctx.Value("x") != nil {
			return nil, errReset
		}
		return answer(r)
	}
}

// The happy path costs the trip that all layers share, and nothing else; with
// timeouts or what a POST's error must prove, the attempt's own context.
func TestAHealthyCallCostsTheTrip(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	get := request(t, "GET", "http://a.example/", "").WithContext(ctx)
	post := request(t, "POST", "http://a.example/", "body").WithContext(ctx)
	for _, tt := range []struct {
		name string
		base http.RoundTripper
		c    retry.Config
		r    *http.Request
		most float64
	}{
		{"without timeouts", stub(), retry.Config{AttemptTimeout: -1, StallTimeout: -1}, get, 1},
		{"with an attempt timeout", stub(), retry.Config{StallTimeout: -1}, get, 2},
		{"as it comes", stub(), retry.Config{}, get, 2},
		{"over a Wire", retry.Wire(stub(), retry.Config{}), retry.Config{}, get, 2},
		{"over a base that asks the context", asking(), retry.Config{}, get, 2},
		{"with a POST's evidence", stub(), retry.Config{}, post, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt := newTransport(t, tt.base, tt.c)
			got := 1e9
			for range 100 { // the pool of clocks forgets, every fourth time under -race
				got = min(got, testing.AllocsPerRun(5, func() {
					if _, err := rt.RoundTrip(tt.r); err != nil {
						t.Fatal(err)
					}
				}))
			}
			t.Logf("%v allocations", got)
			if got > tt.most {
				t.Errorf("got %v allocations, want at most %v", got, tt.most)
			}
		})
	}
}

// A base that waits for the end of each request costs, from the second call on, what package
// context takes for that, and no more.
func TestAnEndToWaitForCostsWhatContextTakes(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	least := testing.AllocsPerRun(100, func() {
		c, stop := context.WithCancelCause(ctx)
		c.Done()
		stop(nil)
	})
	answer := stub()
	rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		r.Context().Done()
		return answer(r)
	}), retry.Config{})
	r := request(t, "GET", "http://a.example/", "").WithContext(ctx)
	got := 1e9
	for range 100 { // the pool of clocks forgets, every fourth time under -race
		got = min(got, testing.AllocsPerRun(5, func() {
			if _, err := rt.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
		}))
	}
	if got > 2+least {
		t.Errorf("%v allocations, want at most 2 and the %v of package context", got, least)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, bb := range []struct {
		name, method string
		c            retry.Config
	}{
		{"NoTimeouts", "GET", retry.Config{AttemptTimeout: -1, StallTimeout: -1}},
		{"Defaults", "GET", retry.Config{}},
		{"POST", "POST", retry.Config{}},
		{"Hedge", "GET", retry.Config{Hedge: retry.Hedge{After: time.Second}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			rt := newTransport(b, stub(), bb.c)
			r := request(b, bb.method, "http://a.example/", "")
			b.ReportAllocs()
			for b.Loop() {
				rt.RoundTrip(r)
			}
		})
	}
}
