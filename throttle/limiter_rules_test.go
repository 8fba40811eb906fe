package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// Each test here holds a rule that some other library was seen to break.

// A sliding window never lets 2 x Limit through at a border, however large
// the limit and however the flood is timed. (Fixed windows 200 of 100, GCRA with
// a burst of the limit 200, two weighted windows 194, ten weighted slots 149.)
func TestFloodAtAnEdge(t *testing.T) {
	for _, budget := range []string{"100/s", "100/s burst 100", "1000/s burst 1000", "64/s burst 64", "100/s burst 50"} {
		t.Run(budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, budget)
				var log []arrived
				start := time.Now()
				for range 300 { // a flood each 10 ms, across three borders
					log = append(log, arrived{time.Since(start), int64(burst(t, l, 2000))})
					time.Sleep(10*time.Millisecond + 17*time.Microsecond)
				}
				r := throttle.MustParseBudget(budget).Rates[0]
				judge(t.Errorf, r, log)
				var sum int64
				for _, a := range log {
					sum += a.n
				}
				if most := int64(3 * r.Limit); sum < most*98/100 {
					t.Errorf("%d of %d used, want at least 98 %%", sum, most)
				}
			})
		})
	}
}

// Each unit of a window makes room again Per after it was spent: to the nanosecond if
// Limit is at most 128, and up to Per/64 later if it is larger.
func TestWindowsUpTo128AreExact(t *testing.T) {
	for limit, late := range map[int]time.Duration{64: 0, 128: 0, 129: time.Minute / 64} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, fmt.Sprintf("%d/m burst %d", limit, limit))
			const apart = 100 * time.Millisecond
			for range limit {
				if !l.Try("k", nil).Allowed {
					t.Fatalf("%d: less than the limit is allowed", limit)
				}
				time.Sleep(apart)
			}
			time.Sleep(time.Minute - time.Duration(limit)*apart)
			latest := time.Duration(0)
			for range limit {
				if d := l.Try("k", nil); !d.Allowed {
					latest = max(latest, d.RetryAfter)
				}
				time.Sleep(apart)
			}
			if latest > late {
				t.Errorf("%d: room is there %v late, want at most %v", limit, latest, late)
			}
		})
	}
}

// A part that is taken costs what was granted, no fraction more. (redis_rate's
// AllowAtMost charges the fractional remainder: 44 of about 70 in 6 s.)
func TestTakingPartsWastesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s bucket 10")
		var sum int64
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(170 * time.Millisecond) {
			if n, err := l.TakeUpTo(police(t), "k", "", 100); err == nil {
				sum += n
			}
		}
		if sum < 68 || sum > 70 {
			t.Errorf("%d taken in 6s, want 69 +- 1", sum)
		}
	})
}

// A cost that can never fit says so, instead of naming a wait after which it is
// refused again. (redis_rate: 200 of a burst of 10, "19 s".)
func TestWhatNeverFitsSaysSo(t *testing.T) {
	l := newLimiter(t, "10/s")
	_, err := l.Take(t.Context(), "k", throttle.Cost{requests: 200})
	var e *throttle.Error
	if !errors.As(err, &e) || e.Reason != throttle.NeverFits || e.RetryAfter != 0 {
		t.Errorf("got %v, want NeverFits without a wait", err)
	}
	if d := l.Try("k", throttle.Cost{requests: 200}); d.Allowed || d.RetryAfter != math.MaxInt64 {
		t.Errorf("got %+v, want the longest RetryAfter", d)
	}
	if n := burst(t, l, 1); n != 1 {
		t.Error("the refusals were charged")
	}
}

// A large limit admits its rate in every second. (sethvargo/go-limiter inverts
// its fill rate: of 100000 a second it admits 15000 in the second one.)
func TestLargeLimitKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100000/s burst 100000")
		for second := range 5 {
			n, err := l.TakeUpTo(police(t), "k", "", math.MaxInt64)
			if err != nil || n < 98000 || n > 100000 {
				t.Errorf("second %d: %d, %v, want 100000", second, n, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// Refused attempts are not counted. (mennanov/limiters, rate-limiter-flexible,
// envoy: a flooding client starves itself.)
func TestRefusedAttemptsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 10")
		n := 0
		for range 10000 {
			if l.Try("k", nil).Allowed {
				n++
			}
			time.Sleep(time.Millisecond)
		}
		if n < 95 {
			t.Errorf("%d of a flood went in 10s, want 100", n)
		}
	})
}

// When the second of several rates refuses, the first is not charged.
// (rate-limiter-flexible#150, redis-cell#22, envoyproxy/ratelimit#440)
func TestStackedRatesChargeAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/h burst 100, 1/s burst 1, 10 tokens/h burst 10")
		if _, err := l.Take(police(t), "k", throttle.Cost{"tokens": 3}); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if l.Try("k", throttle.Cost{"tokens": 1}).Allowed {
				t.Fatal("allowed")
			}
		}
		time.Sleep(time.Second)
		d := l.Try("k", throttle.Cost{"tokens": 7})
		if !d.Allowed {
			t.Error("the refusals were charged to another rate")
		}
		time.Sleep(time.Second)
		_, err := l.Take(police(t), "k", throttle.Cost{"tokens": 1})
		var e *throttle.Error
		if !errors.As(err, &e) || e.Unit != "tokens" {
			t.Errorf("got %v, want a refusal that names tokens", err)
		}
	})
}

// Waiting RetryAfter is enough, to the nanosecond. (redis-cell rounded seconds
// down, so that waiting ended in another 429.)
func TestRetryAfterIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, budget := range []string{"3/s", "7/11s burst 3", "1000003/s burst 7", "13/m bucket 5", "97/s burst 97"} {
			l := newLimiter(t, budget)
			for range 500 {
				d := l.Try("k", nil)
				if d.Allowed {
					continue
				}
				time.Sleep(d.RetryAfter)
				if !l.Try("k", nil).Allowed {
					t.Fatalf("%s: refused after waiting RetryAfter of %v", budget, d.RetryAfter)
				}
			}
		}
	})
}

// Time that several goroutines read at once never runs backwards. (x/time/rate
// admitted 338 % of 1e6/s with 8 goroutines.)
func TestTimeDoesNotRunBackwards(t *testing.T) {
	l := newLimiter(t, "1000000/s burst 1")
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 8 {
		wg.Go(func() {
			n := 0
			for range 20000 {
				if l.Try("k", nil).Allowed {
					n++
				}
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	if most := time.Since(start).Seconds()*1e6 + 2; float64(total) > most {
		t.Errorf("%d admitted, at most %.0f", total, most)
	}
}

// A cost above the bucket is let in when it is full, and paid off by those
// after it. (Guava: 200 of 100.)
func TestCostAboveTheBucketIsPaidOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s bucket 100")
		start := time.Now()
		for i, want := range []time.Duration{0, 2 * time.Second, 2 * time.Second} {
			c := throttle.Cost{requests: 200}
			if i > 0 {
				c = throttle.Cost{requests: 50}
			}
			if _, err := l.Take(t.Context(), "k", c); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				want = time.Duration(i)*500*time.Millisecond + time.Second
			}
			if got := time.Since(start); got < want || got > want+time.Microsecond {
				t.Errorf("%d went at %v, want %v", i, got, want)
			}
		}
	})
}

// Large costs are not starved by small ones. (aiolimiter serves the smallest
// first.)
func TestLargeCostsAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s burst 100")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for ctx.Err() == nil {
					l.Take(ctx, "k", nil)
				}
			})
		}
		time.Sleep(3*time.Second + time.Millisecond)
		start := time.Now()
		if _, err := l.Take(ctx, "k", throttle.Cost{requests: 100}); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("a cost of 100 went after %v, %v, want 2s at most", time.Since(start), err)
		}
		cancel()
		wg.Wait()
	})
}

// What needs two accounts that are never free at the same instant is not starved
// by those that need one of them.
func TestCompositeRequestsAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1000/s burst 1000, 1 x/s, 1 y/s")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, unit := range []string{"x", "y"} {
			for range 3 {
				wg.Go(func() {
					for ctx.Err() == nil {
						l.Take(ctx, "k", throttle.Cost{unit: 1})
					}
				})
			}
			time.Sleep(500 * time.Millisecond) // y is free half a second after x
		}
		start := time.Now()
		if _, err := l.Take(ctx, "k", throttle.Cost{"x": 1, "y": 1}); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("went after %v, %v, want 5s at most", time.Since(start), err)
		}
		cancel()
		wg.Wait()
	})
}
