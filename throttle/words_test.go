package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/weirhttp/weir/throttle"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Reasons have words, and those that no constant names have a number.
func TestReasonsInWords(t *testing.T) {
	for r, want := range map[throttle.Reason]string{0: "unknown", throttle.WaitTooLong: "wait too long", throttle.StoreDown: "store down", throttle.StoreDown + 1: "reason 6"} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.Budget{InFlight: math.MaxInt32}}); err != nil {
		t.Error(err)
	}
	most := math.MaxInt32
	if _, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.Budget{InFlight: most + 1}}); err == nil { // negative where an int is no longer
		t.Error("more places than can be counted")
	}
	for text, want := range map[string]string{
		"1/s warmup x": "a length of time", "1/s warmup 0s": "a time of more than zero", "1/s ,2/m": "", "1/s\t, 2/m ": "",
	} {
		_, err := throttle.ParseBudget(text)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	rate := func(r throttle.Rate) throttle.Config {
		return throttle.Config{Default: throttle.Budget{Rates: []throttle.Rate{r}}}
	}
	tests := []struct {
		c    throttle.Config
		want string
	}{
		{rate(throttle.Rate{Per: time.Second}), "Default.Rates[0].Limit: 0 is less than 1"},
		{rate(throttle.Rate{Limit: -3, Per: time.Second}), "Limit: -3"},
		{rate(throttle.Rate{Limit: 1}), "Per: 0s is not positive"},
		{rate(throttle.Rate{Limit: 1, Per: -time.Second}), "Per: -1s"},
		{rate(throttle.Rate{Limit: 1, Per: math.MaxInt64}), "is more than 10 years"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Burst: -1}), "Burst: -1"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Burst: 2}), "Burst: 2 exceeds the limit of 1"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Bucket: -1}), "Bucket: -1"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Bucket: 2, Burst: 1}), "Bucket: 2 and Burst: 1 are both set"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Bucket: 2, Align: time.UTC}), "Bucket: 2 and Align: UTC are both set"},
		{rate(throttle.Rate{Limit: 1, Per: 1, WarmUp: -1}), "WarmUp: -1ns"},
		{rate(throttle.Rate{Limit: 9, Per: 1, WarmUp: 1, Burst: 2}), "WarmUp: 1ns and a burst of 2 are both set"},
		{rate(throttle.Rate{Limit: 1, Per: 1, Unit: "a b"}), `Unit: "a b"`},
		{throttle.Config{Default: throttle.Budget{InFlight: -1}}, "Default.InFlight: -1"},
		{throttle.Config{Budgets: map[string]throttle.Budget{"a": {InFlight: -1}}}, `Budgets["a"].InFlight: -1`},
		{throttle.Config{Budgets: map[string]throttle.Budget{"a b c": {}}}, "Budgets: "},
		{throttle.Config{Budgets: map[string]throttle.Budget{"A": {}, "a.": {}}}, "mean the same"},
		{throttle.Config{Budgets: map[string]throttle.Budget{"a": throttle.MustParseBudget("1/s, pool x"), "b": throttle.MustParseBudget("2/s, pool x")}}, "all budgets of a pool must be the same"},
		{throttle.Config{MaxQueue: -1}, "MaxQueue: -1"},
		{throttle.Config{MaxKeys: -1}, "MaxKeys: -1"},
		{throttle.Config{MaxPause: -1}, "MaxPause: -1"},
		{throttle.Config{MaxKeys: 1, Budgets: map[string]throttle.Budget{"a": {}, "b": {}}}, "MaxKeys: 1 is less than the number of hosts"},
	}
	for _, test := range tests {
		_, err := throttle.New(nil, test.c)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "throttle: ") {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	for _, test := range []struct {
		c    throttle.LimiterConfig
		want string
	}{
		{throttle.LimiterConfig{Default: throttle.Budget{InFlight: -3}}, "Default.InFlight: -3"},
		{throttle.LimiterConfig{Budgets: map[string]throttle.Budget{"k": {Pool: "x"}}}, `Budgets["k"].Pool: "x"`},
		{throttle.LimiterConfig{MaxKeys: -2}, "MaxKeys: -2"},
	} {
		if _, err := throttle.NewLimiter(test.c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	tr := newTransport(t, nil, throttle.Config{})
	for pattern, b := range map[string]throttle.Budget{"a": {InFlight: -1}, "a b c": {}} {
		if err := tr.SetBudget(pattern, b); err == nil {
			t.Errorf("SetBudget(%q, %v) is accepted", pattern, b)
		}
	}
}

// Who has waited already is refused because of what is left of the limit of waits, and not
// because the whole of it is too short.
func TestARestThatIsTooShortIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(refusing(time.Hour, "")), throttle.Config{})
		for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(time.Second) {
			mustGet(t, tr, "http://h/") // until the guess is a pause of 50 s or more
		}
		_, err := get(t, throttle.WithMaxWait(t.Context(), 40*time.Second), tr, "http://h/")
		if want := " exceeds the rest of the 40s limit (paused until "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one that says %q", err, want)
		}
	})
}

// TestRefusalsInWords: each says what was refused, with its figures.
func TestRefusalsInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1/90s, 5 tokens/s burst 5"), MaxWait: time.Minute, MaxQueue: 1})
		if err != nil {
			t.Fatal(err)
		}
		take := func(ctx context.Context, key string, c throttle.Cost) string {
			_, err := l.Take(ctx, key, c)
			return fmt.Sprint(err)
		}
		take(t.Context(), "k", nil)
		take(t.Context(), "p", nil)
		l.Pause("p", time.Now().Add(time.Hour))
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		long := throttle.WithMaxWait(t.Context(), time.Hour)
		go take(long, "k", nil)
		synctest.Wait()
		for got, want := range map[string]string{
			take(t.Context(), "k", nil):                                     "throttle: k: wait of 3m0s exceeds the 1m0s limit (1/90s)",
			take(short, "k", nil):                                           "throttle: k: wait of 3m0s exceeds the 1.5s left until the deadline (1/90s)",
			take(throttle.WithMaxWait(t.Context(), -1), "k", nil):           "throttle: k: wait of 3m0s; waiting is not allowed (1/90s)",
			take(long, "k", nil):                                            "throttle: k: queue is full (1/90s)",
			take(t.Context(), "k", throttle.Cost{"tokens": 6}):              "throttle: k: cost exceeds what the budget can ever have (5 tokens/s burst 5)",
			take(t.Context(), "p", nil):                                     "throttle: p: paused: wait of 1h0m0s exceeds the 1m0s limit (paused by hand)",
			take(t.Context(), "k", throttle.Cost{"tokens": -1}):             "throttle: cost of -1 tokens is negative",
			throttle.Reason(99).String() + throttle.WaitTooLong.String():    "reason 99wait too long",
			(&throttle.Error{Key: "k", Reason: throttle.StoreDown}).Error(): "throttle: k: store down",
		} {
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		time.Sleep(time.Hour)
	})
}

// A refusal names the limit that is waited for longest, whichever stands first.
func TestRefusalNamesWhatBindsLongest(t *testing.T) {
	for _, budget := range []string{"1/s burst 1, 1 tokens/m burst 1", "1 tokens/m burst 1, 1/s burst 1"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, budget)
			cost := throttle.Cost{"tokens": 1}
			if d := l.Try("k", cost); !d.Allowed {
				t.Fatal(d)
			}
			if d := l.Try("k", cost); d.RetryAfter != time.Minute || d.ResetAfter != time.Minute || d.Remaining != 0 {
				t.Errorf("%s: %+v", budget, d)
			}
			var e *throttle.Error
			_, err := l.Take(police(t), "k", cost)
			if !errors.As(err, &e) || e.Unit != "tokens" || e.RetryAfter != time.Minute {
				t.Errorf("%s: at once: %v", budget, err)
			}
			g, _ := l.Take(t.Context(), "j", cost)
			q := newQueued(t, l)
			q.wg.Go(func() { // whose wait becomes too long on its way
				_, err := l.Take(throttle.WithMaxWait(t.Context(), 61*sec), "j", cost)
				q.mu.Lock()
				q.err["j"], q.at["j"] = err, time.Since(q.start)
				q.mu.Unlock()
			})
			time.Sleep(2 * sec)
			g.Settle(throttle.Cost{requests: 1, "tokens": 2})
			q.wg.Wait()
			if err := q.err["j"]; !errors.As(err, &e) || e.Unit != "tokens" || e.Reason != throttle.WaitTooLong || !strings.Contains(err.Error(), "1 tokens/m") {
				t.Errorf("%s: on its way: %v", budget, err)
			}
		})
	}
}

// Waits are shown rounded up: who waits that long is not too early.
func TestRoundIsNeverShorter(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		time.Minute:                      time.Minute,
		time.Minute + 1:                  time.Minute + time.Second,
		time.Second + 1:                  time.Second + time.Millisecond,
		time.Millisecond:                 time.Millisecond,
		999 * time.Nanosecond:            999 * time.Nanosecond,
		59*time.Second + time.Nanosecond: 59*time.Second + time.Millisecond,
	} {
		e := &throttle.Error{Key: "k", Reason: throttle.WaitTooLong, RetryAfter: d}
		if got, want := e.Error(), "throttle: k: wait of "+want.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: got %v, want %v", d, got, want)
		}
	}
}
