package throttle

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each test here holds a rule that some other library was seen to break.

// police is a context whose requests never wait.
func police(t *testing.T) context.Context { return WithMaxWait(t.Context(), -1) }

// burst takes single units until one is refused, at most n.
func burst(t *testing.T, l *Limiter, n int) (taken int) {
	for taken < n && l.Try("k", nil).Allowed {
		taken++
	}
	return taken
}

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
				r := MustParseBudget(budget).Rates[0]
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

// Cancelling a waiter in the middle moves up those behind it. (x/time/rate: the
// next slot is at 300 ms instead of 200 ms.)
func TestCancelInTheMiddleMovesOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 1")
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var at [3]time.Duration
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				c := t.Context()
				if i == 1 {
					c = ctx
				}
				if _, err := l.Take(c, "k", nil); err == nil {
					at[i] = time.Since(start)
				}
			})
			synctest.Wait()
		}
		cancel()
		wg.Wait()
		if at[2] != 100*time.Millisecond {
			t.Errorf("the last one went at %v, want 100ms", at[2])
		}
	})
}

// Cancelled waiters leave no debt. (x/time/rate: after five of them the next one
// waits 4 to 5 s at 1/s although nobody is queued.)
func TestCancelledWaitersLeaveNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s burst 1")
		burst(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := l.Take(ctx, "k", nil); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		start := time.Now()
		if _, err := l.Take(t.Context(), "k", nil); err != nil || time.Since(start) != time.Second {
			t.Errorf("waited %v, %v, want 1s", time.Since(start), err)
		}
	})
}

// A grant that is cancelled later than the instant it was made comes back, as
// far as it has not flowed off. (x/time/rate: one nanosecond later nothing does.)
func TestCancelAfterANanosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "5/m burst 5")
		for range 20 {
			g, err := l.Take(police(t), "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Nanosecond)
			g.Cancel()
		}
		if n := burst(t, l, 10); n != 5 {
			t.Errorf("%d go after 20 cancelled ones, want 5", n)
		}
	})
}

// Cancel counts once. (x/time/rate: three cancels of a grant of two restore six.)
func TestCancelCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/m bucket 10")
		g, err := l.Take(police(t), "k", Cost{requests: 2})
		if err != nil {
			t.Fatal(err)
		}
		if n := burst(t, l, 10); n != 8 {
			t.Fatalf("%d go, want 8", n)
		}
		copied := g
		for range 3 {
			g.Cancel()
			copied.Cancel()
			copied.Settle(Cost{requests: 0})
		}
		if n := burst(t, l, 10); n != 2 {
			t.Errorf("%d come back, want 2", n)
		}
	})
}

// Stale grants that are cancelled return only what has not flowed off since.
// (Subtracting the cost let 40 calls through at one instant with a burst of 20.)
func TestStaleCancelsMintNothing(t *testing.T) {
	for _, budget := range []string{"20/s bucket 20", "20/s burst 20", "200/10s burst 20"} {
		t.Run(budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, budget)
				var stale []Grant
				for range 20 {
					g, err := l.Take(police(t), "k", nil)
					if err != nil {
						t.Fatal(err)
					}
					stale = append(stale, g)
				}
				time.Sleep(time.Second)
				n := burst(t, l, 100)
				for _, g := range stale {
					g.Cancel()
				}
				if n += burst(t, l, 100); n > 20 {
					t.Errorf("%d go at one instant, want at most 20", n)
				}
			})
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
	_, err := l.Take(t.Context(), "k", Cost{requests: 200})
	var e *Error
	if !errors.As(err, &e) || e.Reason != NeverFits || e.RetryAfter != 0 {
		t.Errorf("got %v, want NeverFits without a wait", err)
	}
	if d := l.Try("k", Cost{requests: 200}); d.Allowed || d.RetryAfter != math.MaxInt64 {
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
		if _, err := l.Take(police(t), "k", Cost{"tokens": 3}); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if l.Try("k", Cost{"tokens": 1}).Allowed {
				t.Fatal("allowed")
			}
		}
		time.Sleep(time.Second)
		d := l.Try("k", Cost{"tokens": 7})
		if !d.Allowed {
			t.Error("the refusals were charged to another rate")
		}
		time.Sleep(time.Second)
		_, err := l.Take(police(t), "k", Cost{"tokens": 1})
		var e *Error
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

// A budget that is raised moves those who wait already, and one that was as
// good as zero wakes them. (x/time/rate: a waiter parked at limit 0 slept for
// ever.)
func TestRaisedBudgetWakesTheParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{Default: MustParseBudget("1/3650d")})
		mustGet(t, tr, "http://a/")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := get(t, WithMaxWait(t.Context(), 1e6*time.Hour), tr, "http://a/"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Hour)
		if err := tr.SetBudget("a", MustParseBudget("1000/s")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		sameTimes(t, b.times(), 0, time.Hour)
	})
}

// Sleepers do not wake as a herd that passes without asking.
// (redpanda-data/connect#1567)
func TestNoHerdAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{Default: MustParseBudget("10/s burst 5")})
		tr.Pause("a", time.Now().Add(time.Minute))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { mustGet(t, tr, "http://a/") })
		}
		wg.Wait()
		at := b.times()
		for i := 1; i < len(at); i++ {
			if at[0] < time.Minute || at[i]-at[i-1] < 99*time.Millisecond {
				t.Fatalf("resumed at %v, want one by one from 1m on", at)
			}
		}
	})
}

// A cost above the bucket is let in when it is full, and paid off by those
// after it. (Guava: 200 of 100.)
func TestCostAboveTheBucketIsPaidOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s bucket 100")
		start := time.Now()
		for i, want := range []time.Duration{0, 2 * time.Second, 2 * time.Second} {
			c := Cost{requests: 200}
			if i > 0 {
				c = Cost{requests: 50}
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
		if _, err := l.Take(ctx, "k", Cost{requests: 100}); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("a cost of 100 went after %v, %v, want 2s at most", time.Since(start), err)
		}
		cancel()
		wg.Wait()
	})
}

// One who is granted and gone at the same time has spent nothing. (Of a select
// between two that are ready, either may win.)
func TestGrantedAndGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1/m bucket 1"), OnWait: func(w Wait) {
				if !w.Over {
					time.Sleep(time.Minute) // granted meanwhile
					synctest.Wait()
					cancel()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			l.Try("k", nil)
			if _, err := l.Take(ctx, "k", nil); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want context.Canceled", err)
			}
			if !l.Try("k", nil).Allowed {
				t.Fatal("the grant of one who had gone is lost")
			}
		}
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
						l.Take(ctx, "k", Cost{unit: 1})
					}
				})
			}
			time.Sleep(500 * time.Millisecond) // y is free half a second after x
		}
		start := time.Now()
		if _, err := l.Take(ctx, "k", Cost{"x": 1, "y": 1}); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("went after %v, %v, want 5s at most", time.Since(start), err)
		}
		cancel()
		wg.Wait()
	})
}
