package throttle_test

import (
	"github.com/weirhttp/weir/throttle"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPenaltyEndsOnTheSecond: a pause over an idle key tells its length and no
// nanosecond more.
func TestPenaltyEndsOnTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, budget := range []string{"3/h", "5/m", "5/m burst 5", "5/m align UTC", "5/m align UTC, 3/h", "60/m bucket 5", "7/11s"} {
			l := newLimiter(t, budget)
			end := time.Now().Add(time.Minute)
			l.Pause("k", end)
			for _, nap := range []time.Duration{0, 5 * time.Second, 54 * time.Second} {
				time.Sleep(nap)
				if got, want := l.Try("k", nil).RetryAfter, time.Until(end); got != want {
					t.Errorf("%s: retry after %v, want %v", budget, got, want)
				}
			}
			time.Sleep(time.Until(end))
			if !l.Try("k", nil).Allowed {
				t.Errorf("%s: still paused", budget)
			}
		}
	})
}

// After a pause that ends before its time, by a shorter one too, the flow
// resumes then: with one request, and the next at the rate.
func TestPauseThatEndsEarly(t *testing.T) {
	const budget = "10/s burst 5, 9 in flight"
	synctest.Test(t, func(t *testing.T) {
		for _, then := range []time.Duration{0, sec} {
			l := newLimiter(t, budget)
			l.Pause("k", time.Now().Add(time.Hour))
			l.Pause("k", time.Now().Add(then))
			time.Sleep(then)
			if d := l.Try("k", nil); !d.Allowed {
				t.Errorf("paused for %v after all: %+v, want one", then, d)
			}
			if d := l.Try("k", nil); d.Allowed || d.RetryAfter != sec/10 {
				t.Errorf("paused for %v after all: %+v, want the next in 100 ms", then, d)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget(budget), Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }})
		urls := []string{"http://h/?who=a", "http://h/"}
		for _, url := range urls {
			mustGet(t, tr, url)
		}
		time.Sleep(time.Minute)
		tr.Pause("h", time.Now().Add(time.Hour))
		tr.Resume("h")
		start := time.Now()
		for i := range 2 {
			for _, url := range urls {
				mustGet(t, tr, url)
				if got, want := time.Since(start), time.Duration(i)*sec/10; got < want || got > want+time.Microsecond {
					t.Errorf("%s: request %d went after %v, want %v", url, i, got, want)
				}
			}
		}
	})
}

// At the instant a pause ends there is none.
func TestStatsAtTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("5/s")})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(time.Minute))
		for _, left := range []time.Duration{time.Minute, 1, 0} {
			h := tr.Stats().Hosts[0]
			paused := left > 0
			if (h.State == throttle.StatePaused) != paused || (h.Routes[0].State == throttle.StatePaused) != paused || (len(h.Restrictions) > 0) != paused {
				t.Errorf("%v before the end: %v, %+v, %+v", left, h.State, h.Routes, h.Restrictions)
			}
			time.Sleep(left - left/time.Minute)
		}
	})
}

// Sleepers do not wake as a herd that passes without asking.
// (redpanda-data/connect#1567)
func TestNoHerdAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("10/s burst 5")})
		tr.Pause("a", time.Now().Add(time.Minute))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { mustGet(t, tr, "http://a/") })
		}
		wg.Wait()
		at := b.Times()
		for i := 1; i < len(at); i++ {
			if at[0] < time.Minute || at[i]-at[i-1] < 99*time.Millisecond {
				t.Fatalf("resumed at %v, want one by one from 1m on", at)
			}
		}
	})
}
