package throttle_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// goes counts what goes for d, with several callers who always want more.
func goes(t *testing.T, d time.Duration, ls ...*throttle.Limiter) (n int) {
	t.Helper()
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		for _, l := range ls {
			if l.Try("k", nil).Allowed {
				n++
			}
		}
		time.Sleep(time.Second)
	}
	return n
}

// What is left of a window is spread over what is left of its time, whenever the
// work begins, stops and begins again.
func TestEvenSpreadsWhatIsLeft(t *testing.T) {
	withAndWithoutStore(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("2400/d even align UTC")}, func(t *testing.T, l *throttle.Limiter) {
		now := time.Now()
		midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(midnight.Add(12 * time.Hour).Sub(now)) // noon
		near := func(what string, got, want int) {
			t.Helper()
			if got < want-want/50-2 || got > want+want/50+2 {
				t.Errorf("%s: %d went, want about %d", what, got, want)
			}
		}
		near("from noon, in three hours", goes(t, 3*time.Hour, l), 600)
		time.Sleep(5 * time.Hour) // 1800 are left for four
		near("in the next two, after a rest", goes(t, 2*time.Hour, l), 900)
		near("in the last two", goes(t, 2*time.Hour, l), 900)
		near("in an hour of the next day", goes(t, time.Hour, l), 100)
	})
}

// Two processes spread it together.
func TestEvenHoldsForTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var ls []*throttle.Limiter
		for range 2 {
			l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("2400/d even align UTC"), Store: s, Fleet: throttle.FleetConfig{Members: 2}})
			defer l.Close()
			ls = append(ls, l)
		}
		time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)))
		if n := goes(t, 3*time.Hour, ls...); n < 580 || n > 620 {
			t.Errorf("%d in three hours from noon, want about 600", n)
		}
		if n := goes(t, 9*time.Hour, ls...); n > 1820 || n < 1750 {
			t.Errorf("%d in the rest of the day, want about 1800", n)
		}
	})
}

// A new limit, units that come back and large costs move what is due.
func TestEvenFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{Default: throttle.MustParseBudget("24/d even align UTC"), MaxWait: 48 * time.Hour})
		time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)))
		start := time.Now()
		take := func(c throttle.Cost) (throttle.Grant, time.Duration) {
			g, err := l.Take(t.Context(), "k", c)
			if err != nil {
				t.Fatal(err)
			}
			return g, time.Since(start).Round(time.Second)
		}
		at := func(what string, got, want time.Duration) {
			t.Helper()
			if got < want-time.Second || got > want+time.Second {
				t.Errorf("%s: went after %v, want %v", what, got, want)
			}
		}
		_, d := take(nil)
		at("the first", d, 0)
		g, d := take(nil)
		at("the second", d, time.Hour)
		g.Cancel()
		_, d = take(nil)
		at("one in the place of one that was cancelled", d, time.Hour)
		_, d = take(throttle.Cost{requests: 4})
		at("four", d, 2*time.Hour)
		_, d = take(nil)
		at("one after four", d, 6*time.Hour)
		if err := l.SetBudget("k", throttle.MustParseBudget("42/d even align UTC")); err != nil { // 35 are left for 18 hours: with the last, 36
			t.Fatal(err)
		}
		_, d = take(nil)
		at("one under a new limit", d, 6*time.Hour+30*time.Minute)
		if d := l.Look("k", nil); d.Remaining != 0 || d.Allowed {
			t.Errorf("%+v, want none now", d)
		}
		if err := l.SetBudget("k", throttle.MustParseBudget("42/d burst 42 align UTC")); err != nil {
			t.Fatal(err)
		}
		if n := allowed(l, "k", 100); n != 34 {
			t.Errorf("%d at once when it is not even any more, want the 34 that are left", n)
		}
		if err := l.SetBudget("k", throttle.MustParseBudget("43/d even align UTC")); err != nil {
			t.Fatal(err)
		}
		if n := allowed(l, "k", 100); n > 1 {
			t.Errorf("%d when it is even again, want one at most", n)
		}
	})
}

// What cannot be spread is an error, and the text says what it means.
func TestEvenInText(t *testing.T) {
	for text, want := range map[string]string{
		"5/s even":                          "Even: it needs Align",
		"5/s even burst 2 align UTC":        "Even: it cannot be used together with a burst (here 2)",
		"5/s even warmup 2s align UTC":      "a WarmUp (here 2s)",
		"5/d even even align UTC":           "even once at most",
		"5/d bucket 3 even align UTC":       "Bucket: 3 and",
		"2400/d even align UTC":             "",
		"2400/d align UTC even":             "",
		"9 tokens/h even align UTC, 1000/h": "",
	} {
		b, err := throttle.ParseBudget(text)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
			continue
		}
		if again, err2 := throttle.ParseBudget(b.String()); err != nil || err2 != nil || !reflect.DeepEqual(again, b) || !b.Rates[0].Even {
			t.Errorf("%s: %v, %v; %s", text, err, err2, b)
		}
	}
}
