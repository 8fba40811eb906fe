package throttle_test

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// What a Decision writes is understood as it was meant, by this library too: how
// many of how many units are left for how long, and when to come again.
func TestWriteHeaderIsUnderstood(t *testing.T) {
	for _, test := range []struct {
		budget string
		cost   throttle.Cost
		want   string // unit, quota, left, window, reset, Retry-After
	}{
		{"10/m burst 10", throttle.Cost{requests: 4}, "requests 10 6 1m0s 1m0s -"},
		{"10/m burst 10", throttle.Cost{requests: 11}, "requests 10 10 1m0s 1s -"},
		{"1000 tokens/h burst 1000", throttle.Cost{"tokens": 1000}, "tokens 1000 0 1h0m0s 1h0m0s -"},
		{"60/m bucket 5", throttle.Cost{requests: 5}, "requests 5 0 5s 5s -"},
		{"5/s burst 1, 3/m burst 3", throttle.Cost{requests: 1}, "requests 5 0 1s 1m0s -"},
		{"2 in flight", nil, ""},
		{"unlimited", nil, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := http.Header{}
			newLimiter(t, test.budget).Try("k", test.cost).WriteHeader(h)
			s := headers.Parse(&http.Response{StatusCode: 200, Header: h}, time.Now())
			got := ""
			for _, l := range s.Limits {
				after := "-"
				if s.RetryAfter.Known {
					after = s.RetryAfter.Value.String()
				}
				got += fmt.Sprint(l.Unit, " ", l.Quota.Value, " ", l.Remaining.Value, " ", l.Window.Value, " ", l.Reset.Value, " ", after)
			}
			if got != test.want {
				t.Errorf("%s: %v is understood as %q, want %q", test.budget, h, got, test.want)
			}
		})
	}
}

// Waits are rounded up: who comes when he was told to is not refused again.
func TestWriteHeaderNamesAWaitThatIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "7/3s burst 2")
		for range 100 {
			d := l.Try("k", nil)
			if d.Allowed {
				continue
			}
			h := http.Header{"Retry-After": {"99"}}
			d.WriteHeader(h)
			after, err := time.ParseDuration(h.Get("Retry-After") + "s")
			if err != nil || after < time.Second || len(h["Retry-After"]) != 1 {
				t.Fatal(h, err)
			}
			time.Sleep(after)
			if !l.Try("k", nil).Allowed {
				t.Fatalf("refused after the wait of %v that was named for %v", after, d.RetryAfter)
			}
		}
		h := http.Header{}
		l.Try("k", throttle.Cost{requests: 100}).WriteHeader(h)
		if h.Get("Retry-After") != "" {
			t.Errorf("a wait for what never fits: %v", h)
		}
		h = http.Header{}
		throttle.Decision{Allowed: true, Unit: "bytes", Limit: 1<<62 + 1, Remaining: -5, Per: time.Millisecond}.WriteHeader(h)
		if got, want := fmt.Sprint(h), `map[Ratelimit:["bytes";r=0;t=1] Ratelimit-Policy:["bytes";q=999999999999999;qu="content-bytes";w=1]]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A decision tells of the limit with the least left, the first of equals, and
// of none that the request does not draw on, unless it draws on none at all.
func TestDecisionsNameALimit(t *testing.T) {
	for _, test := range []struct {
		budget      string
		cost        throttle.Cost
		limit, left int64
	}{
		{"3 tokens/m burst 3, 2/s burst 2", throttle.Cost{"tokens": 2}, 3, 1},
		{"2/s burst 2, 3 tokens/m burst 3", throttle.Cost{"tokens": 2}, 2, 1},
		{"3 tokens/m burst 3, 2/s burst 2", throttle.Cost{"tokens": 3}, 3, 0},
		{"10/s burst 10, 100 tokens/m burst 100, 1 in flight", throttle.Cost{requests: 0, "tokens": 5}, 100, 95},
		{"10/s burst 10, 1 in flight", nil, 10, 9},
		{"10/s burst 10, 1 in flight", throttle.Cost{requests: 0}, 10, 10},
		{"10 tokens/s burst 10, 1 in flight", throttle.Cost{requests: 0}, 10, 10},
		{"1 in flight", nil, int64(unknown), int64(unknown)},
	} {
		synctest.Test(t, func(t *testing.T) {
			if d := newLimiter(t, test.budget).Try("k", test.cost); !d.Allowed || d.Limit != test.limit || d.Remaining != test.left {
				t.Errorf("%s: %+v, want %d of %d left", test.budget, d, test.left, test.limit)
			}
		})
	}
}

// TestDecisionIsAsRedisCells: the same allowed, limit, remaining, retry-after, reset-after as
// redis-cell with a burst of 5 and 60 a minute.
func TestDecisionIsAsRedisCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		l := newLimiter(t, "60/m bucket 5")
		steps := []struct {
			sleep time.Duration
			cost  int64
			want  throttle.Decision
		}{
			{0, 1, throttle.Decision{true, 5, 4, 0, s, requests, 5 * s}},
			{0, 3, throttle.Decision{true, 5, 1, 0, 4 * s, requests, 5 * s}},
			{0, 2, throttle.Decision{false, 5, 1, s, 4 * s, requests, 5 * s}},
			{s, 2, throttle.Decision{true, 5, 0, 0, 5 * s, requests, 5 * s}},
			{0, 1, throttle.Decision{false, 5, 0, s, 5 * s, requests, 5 * s}},
			{2500 * time.Millisecond, 1, throttle.Decision{true, 5, 1, 0, 3500 * time.Millisecond, requests, 5 * s}},
			{time.Hour, 1, throttle.Decision{true, 5, 4, 0, s, requests, 5 * s}},
		}
		for i, step := range steps {
			time.Sleep(step.sleep)
			if got := l.Try("k", throttle.Cost{requests: step.cost}); got != step.want {
				t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
			}
		}
	})
}

// A Decision about a limit as large as an int is as sane as any.
func TestDecisionAboutTheLargestLimit(t *testing.T) {
	for _, r := range []throttle.Rate{
		{Limit: math.MaxInt, Per: time.Second},
		{Limit: math.MaxInt, Per: time.Second, Burst: math.MaxInt},
		{Limit: math.MaxInt, Per: time.Second, Bucket: math.MaxInt},
		{Limit: 1, Per: time.Second, Bucket: math.MaxInt},
		{Limit: math.MaxInt, Per: 24 * time.Hour, Burst: math.MaxInt, Align: time.UTC},
		{Limit: math.MaxInt, Per: time.Second, Unit: "bytes"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.Budget{Rates: []throttle.Rate{r}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int64{1, 1000} {
				d := l.Try("k", throttle.Cost{cmp.Or(r.Unit, requests): n})
				if !d.Allowed || d.Limit != math.MaxInt || d.Remaining < math.MaxInt/20 || d.RetryAfter != 0 || d.ResetAfter < 0 {
					t.Errorf("%v, %d units: %+v", r, n, d)
				}
			}
			if n, err := l.TakeUpTo(t.Context(), "k", cmp.Or(r.Unit, requests), 7); n != 7 || err != nil {
				t.Errorf("%v: %d of 7, %v", r, n, err)
			}
		})
	}
}
