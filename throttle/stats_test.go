package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// slowly answers after the time that the request's path names, with the status
// and header of its turn.
func slowly(turn func(n int) (int, http.Header)) http.RoundTripper {
	n := 0
	var mu sync.Mutex
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		d, err := time.ParseDuration(r.URL.Path[1:])
		if err != nil {
			return nil, err
		}
		time.Sleep(d)
		mu.Lock()
		n++
		status, header := turn(n)
		mu.Unlock()
		return testnet.Answer(r, status, header, http.NoBody), nil
	})
}

func statsOf(t *testing.T, rt *throttle.Transport) throttle.HostStats {
	t.Helper()
	all := rt.Stats().Hosts
	if len(all) != 1 {
		t.Fatalf("%d hosts", len(all))
	}
	return all[0]
}

// spread is a Histogram's counts by the upper ends of its buckets.
func spread(h *throttle.Histogram) map[time.Duration]int64 {
	m := make(map[time.Duration]int64)
	for i, n := range h.Counts {
		end := time.Duration(math.MaxInt64)
		if b := throttle.HistogramBounds(); i < len(b) {
			end = b[i]
		}
		if n != 0 {
			m[end] = n
		}
	}
	return m
}

// TestStatsCount: every number follows from the script.
func TestStatsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := slowly(func(n int) (int, http.Header) {
			if n == 6 {
				return 429, http.Header{"Retry-After": {"600"}}
			}
			return 200, http.Header{}
		})
		rt, err := throttle.New(base, throttle.Config{Default: throttle.MustParseBudget("2/s burst 2"), MaxQueue: 3, MaxWait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		do := func(ctx context.Context, path string) error {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example/"+path, nil)
			resp, err := rt.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		ctx := t.Context()
		for _, path := range []string{"1ms", "80ms"} { // the burst; 81 ms have passed
			if err := do(ctx, path); err != nil {
				t.Fatal(err)
			}
		}
		gone, leave := context.WithCancel(ctx)
		var done sync.WaitGroup
		for _, c := range []context.Context{ctx, ctx, gone} {
			done.Go(func() {
				if err := do(c, "2s"); err != nil && c == ctx {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		refused := func(want throttle.Reason, err error) {
			t.Helper()
			var e *throttle.Error
			if !errors.As(err, &e) || e.Reason != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		refused(throttle.QueueFull, do(ctx, "1ms"))
		refused(throttle.NeverFits, do(throttle.WithCost(ctx, throttle.Cost{"requests": 9}), "1ms"))
		refused(throttle.WaitTooLong, do(throttle.WithMaxWait(ctx, -1), "1ms"))
		time.Sleep(100 * time.Millisecond)
		leave()
		done.Wait()
		time.Sleep(10 * time.Second)
		for range 2 {
			if err := do(ctx, "700ms"); err != nil {
				t.Fatal(err)
			}
		}
		refused(throttle.Paused, do(ctx, "700ms"))

		h := statsOf(t, rt)
		want := fmt.Sprint(map[string]int64{"queue full": 1, "never fits": 1, "wait too long": 1, "paused": 1})
		if got := fmt.Sprint(h.RefusedBy); got != want || h.Refused != 4 {
			t.Errorf("%d refused: %s, want 4: %s", h.Refused, got, want)
		}
		if h.Granted != 6 || h.Waited != 3 || h.Cancelled != 1 || h.Throttled != 1 || h.Pauses != 1 {
			t.Errorf("granted %d, waited %d, cancelled %d, throttled %d, pauses %d", h.Granted, h.Waited, h.Cancelled, h.Throttled, h.Pauses)
		}
		// Two were answered at 1 and at 81 ms, so from 81 ms on one waits until 1001
		// ms, one until 1081 ms; one gave up after 100 ms.
		if got, want := spread(&h.Wait), (map[time.Duration]int64{100 * time.Millisecond: 1, time.Second: 2}); !maps.Equal(got, want) || h.Wait.Count != 3 {
			t.Errorf("waits %v, want %v", got, want)
		}
		if got, want := h.Wait.Sum, 2020*time.Millisecond; got != want {
			t.Errorf("waits of %v in all, want %v", got, want)
		}
		if got, want := spread(&h.Latency), (map[time.Duration]int64{time.Millisecond: 1, 100 * time.Millisecond: 1, time.Second: 2, 2500 * time.Millisecond: 2}); !maps.Equal(got, want) {
			t.Errorf("latencies %v, want %v", got, want)
		}
		if got, want := h.Latency.Sum, 5481*time.Millisecond; got != want || h.Latency.Count != 6 {
			t.Errorf("%d latencies of %v in all, want %v", h.Latency.Count, got, want)
		}
		rt.Pause("api.example", time.Now().Add(time.Minute))
		rt.Pause("api.example", time.Now().Add(time.Hour)) // the same, longer
		rt.Resume("api.example")
		if h := statsOf(t, rt); h.Pauses != 2 {
			t.Errorf("%d pauses, want 2", h.Pauses)
		}
	})
}

// TestStatsLearned: what the words say stands in fields too.
func TestStatsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 100
		base := slowly(func(n int) (int, http.Header) {
			left--
			return 200, http.Header{
				"Ratelimit-Policy": {`"core";q=100;w=3600`}, "Ratelimit": {fmt.Sprintf(`"core";r=%d;t=3000`, left)},
			}
		})
		rt, err := throttle.New(base, throttle.Config{})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 20 {
			r, _ := http.NewRequest("GET", "http://api.example/0s", nil)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		h := statsOf(t, rt)
		if len(h.Learned) != 1 {
			t.Fatalf("learned %+v", h.Learned)
		}
		got := h.Learned[0]
		if d := got.Until.Sub(begin); d < 2999*time.Second || d > 3001*time.Second {
			t.Errorf("until %v after the begin", d)
		}
		got.Until = time.Time{}
		want := throttle.LearnedLimit{
			Kind: throttle.LearnedQuota, Name: "core", Unit: "requests", Source: "said by RateLimit", Limit: 100, Per: time.Hour, Left: 80,
			Why: `80 of 100 left of "core" until ` + h.Learned[0].Until.Format("15:04:05") + ", said by RateLimit",
		}
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if x := h.Restrictions; len(x) != 1 || !x[0].Learned || x[0].Unit != "requests" || x[0].Why != "api.example: "+want.Why {
			t.Errorf("restrictions %+v", x)
		}
	})
}

// TestStatsLearnedPause: a pause has its end, and for how long it holds one up.
func TestStatsLearnedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := throttle.New(slowly(func(int) (int, http.Header) { return 429, http.Header{"Retry-After": {"100000"}} }), throttle.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("GET", "http://api.example/0s", nil)
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, x := range statsOf(t, rt).Learned {
			if x.Kind != throttle.LearnedPause {
				continue
			}
			if d := time.Until(x.Until); d != x.Wait || d != 5*time.Minute || x.Source != "said by Retry-After, shortened: it asked for longer" || x.Left != -1 || x.Limit != 0 {
				t.Errorf("%v: %+v", d, x)
			}
			return
		}
		t.Error("no pause")
	})
}

// TestStatsOfTheStore: what the Store refuses counts by its reason, and what is
// called off meanwhile is no refusal.
func TestStatsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := farstore.New(time.Second)
		rt, err := throttle.New(slowly(func(int) (int, http.Header) { return 200, http.Header{} }), throttle.Config{
			Default: throttle.MustParseBudget("100/s"), Store: store, Fleet: throttle.FleetConfig{WhenDown: throttle.FailClosed, Deadline: 5 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		cut, stop := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, stop)
		r, _ := http.NewRequestWithContext(cut, "GET", "http://api.example/0s", nil)
		if _, err := rt.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if h := statsOf(t, rt); h.Cancelled != 1 || h.Refused != 0 || h.RefusedBy != nil || h.Granted != 0 {
			t.Errorf("called off: %+v", h)
		}
		time.Sleep(5 * time.Second)
		store.Fail(errors.New("gone"), false)
		r, _ = http.NewRequestWithContext(t.Context(), "GET", "http://api.example/0s", nil)
		if _, err := rt.RoundTrip(r); err == nil {
			t.Fatal("an answer")
		}
		if h := statsOf(t, rt); h.Cancelled != 1 || h.Refused != 1 || h.RefusedBy["store down"] != 1 {
			t.Errorf("refused: %+v", h)
		}
	})
}

// Only a Retry-After makes a 503 one that throttles.
func TestA503ThatThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, want := range map[int][2]int64{503: {0, 1}, 429: {1, 1}, 500: {0, 0}} {
			for i, header := range []http.Header{{}, {"Retry-After": {"1"}}} {
				tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
					return testnet.Answer(r, status, header, nil), nil
				}), throttle.Config{})
				mustGet(t, tr, "http://h/")
				if got := statsOf(t, tr).Throttled; got != want[i] {
					t.Errorf("%d with %v: %d throttled", status, header, got)
				}
			}
		}
	})
}
