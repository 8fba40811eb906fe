package doctest_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// limiting is a Limiter whose keys have one budget.
func limiting(t *testing.T, budget string) *throttle.Limiter {
	return must(throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget(budget)}))(t)
}

// sends is how many of n are let through at once.
func sends(n int, try func() throttle.Decision) (count int) {
	for range n {
		if try().Allowed {
			count++
		}
	}
	return count
}

// systems are what people write elsewhere, by name. Each has the line in it that
// docs/budgets.md shows, and does what that promises.
func systems() map[string]func(t *testing.T) {
	ctx := context.Background()
	atOnce := func(t *testing.T, l *throttle.Limiter, want int) {
		t.Helper()
		if n := sends(100, func() throttle.Decision { return l.Try("ann", nil) }); n != want {
			t.Errorf("%d of 100 at once, want %d", n, want)
		}
	}
	return map[string]func(t *testing.T){
		"a counter with an expiry": func(t *testing.T) {
			l := limiting(t, "60/m burst 60")
			atOnce(t, l, 60)
			time.Sleep(59 * time.Second)
			atOnce(t, l, 0)
			time.Sleep(time.Second)
			atOnce(t, l, 60)
		},
		"a sorted set of times": func(t *testing.T) {
			isActionAllowed := func(l *throttle.Limiter) bool { return l.Try("ann:reply", nil).Allowed }
			l := limiting(t, "5/m burst 5")
			for i := range 6 {
				if isActionAllowed(l) != (i < 5) {
					t.Errorf("action %d", i)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(54 * time.Second)
			if !isActionAllowed(l) || isActionAllowed(l) {
				t.Error("not one when the first is a minute old")
			}
		},
		"a funnel of 5, leaking one in 2 s": func(t *testing.T) {
			l := limiting(t, "1/2s bucket 5")
			atOnce(t, l, 5)
			time.Sleep(4 * time.Second)
			atOnce(t, l, 2)
		},
		"redis-cell: `CL.THROTTLE key 15 30 60`": func(t *testing.T) {
			l := limiting(t, "30/m bucket 16")
			d := l.Try("ann", nil)
			if !d.Allowed || d.Limit != 16 || d.Remaining != 15 || d.RetryAfter != 0 || d.ResetAfter != 2*time.Second {
				t.Errorf("%+v", d)
			}
		},
		"a list of tokens that a job fills": func(t *testing.T) {
			l := limiting(t, "10/s bucket 40")
			atOnce(t, l, 40)
			time.Sleep(time.Second)
			atOnce(t, l, 10)
		},
		"tokens fetched ahead": func(t *testing.T) {
			fleet := throttle.FleetConfig{Members: 4, Lease: 100 * time.Millisecond}
			l := must(throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1000/s burst 100"), Store: store.NewMemory(), Fleet: fleet}))(t)
			defer l.Close()
			atOnce(t, l, 100)
		},
		"a leaky bucket that queues": func(t *testing.T) {
			l, start := limiting(t, "10/s burst 1"), time.Now()
			for range 11 {
				if _, err := l.Take(ctx, "k", nil); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start).Round(time.Millisecond); d != time.Second {
				t.Errorf("the eleventh went after %v", d)
			}
		},
		"a leaky bucket that drops": func(t *testing.T) { atOnce(t, limiting(t, "10/s burst 1"), 1) },
		"Guava's `RateLimiter.create(5)`": func(t *testing.T) {
			l := limiting(t, "5/s bucket 5")
			if !l.Try("k", throttle.Cost{"requests": 50}).Allowed { // paid by those after it
				t.Error("a large cost was refused")
			}
			start := time.Now()
			if _, err := l.Take(ctx, "k", nil); err != nil || time.Since(start).Round(time.Millisecond) != 9200*time.Millisecond {
				t.Error(time.Since(start), err)
			}
		},
		"Guava's `create(5, 3, SECONDS)`": func(t *testing.T) {
			l, start := limiting(t, "5/s warmup 3s"), time.Now()
			for range 2 {
				if _, err := l.Take(ctx, "k", nil); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start); d < 400*time.Millisecond || d > 600*time.Millisecond { // cold: three times 200 ms at first
				t.Errorf("the second went after %v", d)
			}
		},
		"Sentinel's token server": func(t *testing.T) {
			shared := store.NewMemory() // or redisstore.New(client, redisstore.Config{})
			n := 0
			for range 3 {
				l := must(throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("100/s burst 10"), Store: shared, Fleet: throttle.FleetConfig{Members: 3}}))(t)
				defer l.Close()
				n += sends(20, func() throttle.Decision { return l.Try("k", nil) })
			}
			if n != 10 {
				t.Errorf("three processes sent %d at once", n)
			}
		},
		"Hystrix: 20 calls, 50 %, 5 s": func(t *testing.T) {
			c := breaker.Config{MinCalls: 20, FailureRate: 0.5, Consecutive: -1, OpenFor: 5 * time.Second, MaxOpenFor: 5 * time.Second}
			circuits := must(breaker.NewCircuits(c))(t)
			bad := errors.New("down")
			for i := range 20 {
				if circuits.State("db") != breaker.Closed {
					t.Errorf("open after %d calls", i)
				}
				circuits.Do(ctx, "db", func(context.Context) error {
					if i > 0 && i < 11 {
						return nil
					}
					return bad
				})
			}
			if circuits.State("db") != breaker.Open {
				t.Error("closed after 10 failures of 20, the first of them the first call")
			}
			var refused *breaker.Error
			if err := circuits.Do(ctx, "db", func(context.Context) error { return nil }); !errors.As(err, &refused) || refused.RetryAfter < 4*time.Second || refused.RetryAfter > 6*time.Second {
				t.Error(err) // give or take a fifth, so that not all come together
			}
		},
		"contracts by customer": func(t *testing.T) {
			contracts := map[string]throttle.Budget{"gold:*": throttle.MustParseBudget("100/s burst 100"), "*": throttle.MustParseBudget("1/s")}
			l := must(throttle.NewLimiter(throttle.LimiterConfig{Budgets: contracts}))(t)
			if n := sends(200, func() throttle.Decision { return l.Try("gold:acme", nil) }); n != 100 {
				t.Errorf("%d for gold", n)
			}
			atOnce(t, l, 1)
		},
		"three a day": func(t *testing.T) {
			l := limiting(t, "3/d burst 3 align UTC")
			atOnce(t, l, 3)
			time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)))
			atOnce(t, l, 3)
		},
		"a quota for all day, not for the morning": func(t *testing.T) {
			l := limiting(t, "2400/d even align UTC")
			atOnce(t, l, 1)
			time.Sleep(time.Minute)
			atOnce(t, l, 1)
		},
		"a shaper": func(t *testing.T) {
			l := limiting(t, "10/s")
			if _, err := l.Take(ctx, "k", nil); err != nil {
				t.Error(err)
			}
		},
		"a policer": func(t *testing.T) {
			l := limiting(t, "10/s")
			if d := l.Try("k", nil); !d.Allowed {
				t.Error(d)
			}
		},
		"a plan, a user and an endpoint": func(t *testing.T) {
			l := limiting(t, "3/m burst 3")
			for i := range 4 {
				if _, d := l.TryAll([]string{"plan:free", "user:ann", "GET /search"}, nil); d.Allowed != (i < 3) {
					t.Error(i, d)
				}
			}
		},
	}
}

// TestSystems runs what the guide's table promises, row by row, and finds each of
// its lines in the code that ran.
func TestSystems(t *testing.T) {
	guide, err := os.ReadFile(root + "/docs/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, file := range []string{"systems_test.go", root + "/outbox/example_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	_, table, _ := strings.Cut(string(guide), "## What you know from elsewhere")
	table, _, _ = strings.Cut(table, "\n## ")
	all, found := systems(), 0
	for _, row := range regexp.MustCompile("(?m)^\\| (.+?) \\| `([^`]+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		for _, line := range row[2:] {
			if !strings.Contains(code, line) {
				t.Errorf("%s: no code has %s", row[1], line)
			}
		}
		run := all[row[1]]
		if run == nil {
			if !strings.HasPrefix(row[1], "storing for later") { // which runs in its own module
				t.Errorf("%s is not run", row[1])
			}
			continue
		}
		found++
		t.Run(row[1], func(t *testing.T) { synctest.Test(t, run) })
	}
	if found != len(all) {
		t.Errorf("the guide shows %d of %d systems", found, len(all))
	}
}
