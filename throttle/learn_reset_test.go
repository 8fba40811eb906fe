package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

func TestRemainingWithoutReset(t *testing.T) {
	tokens, last := 20.0, time.Time{}
	learnRun(t, throttle.Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if !last.IsZero() {
			tokens = min(20, tokens+now.Sub(last).Seconds()*10)
		}
		last = now
		if tokens < 1 {
			return reply(429, "X-RateLimit-Remaining", "0")
		}
		tokens--
		return reply(200, "X-RateLimit-Remaining", strconv.Itoa(int(tokens)))
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		start := time.Now()
		failed := swarm(rt, 120, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused > 12 || took > 20*time.Second {
			t.Errorf("%d errors, %d refusals, %v; want 0, at most 12, at most 20s (10s is ideal)", failed, s.refused, took)
		}
	})
}

func TestRollingResets(t *testing.T) {
	var log []time.Time
	learnRun(t, throttle.Config{}, func(_ *http.Request, now time.Time) *http.Response {
		for len(log) > 0 && now.Sub(log[0]) >= 10*time.Second {
			log = log[1:]
		}
		status := 200
		if len(log) < 50 {
			log = append(log, now)
		} else {
			status = 429
		}
		left := (10*time.Second - now.Sub(log[0]) + time.Second - 1) / time.Second
		return reply(status, "RateLimit-Policy", `"default";q=50;w=10`, "RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, 50-len(log), left))
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		start := time.Now()
		failed := swarm(rt, 200, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused > 4 || took > 35*time.Second {
			t.Errorf("%d errors, %d refusals, %v; want 0, at most 4, at most 35s (30s is ideal)", failed, s.refused, took)
		}
	})
}

func TestPaceSpreadsAWindow(t *testing.T) {
	var zero time.Time
	left := 60
	var sent []time.Time
	learnRun(t, throttle.Config{Pace: true}, func(_ *http.Request, now time.Time) *http.Response {
		if zero.IsZero() {
			zero = now.Truncate(time.Second)
		}
		sent = append(sent, now)
		left--
		return reply(200, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", reset(zero, time.Minute))
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		swarm(rt, 50, "http://h/v1")
		if took := sent[len(sent)-1].Sub(sent[0]); took < 45*time.Second || took > 58*time.Second {
			t.Errorf("50 of 60 a minute took %v, want about 50s", took)
		}
	})
}

// TestFinerReset: a server whose window starts with its first request states
// the window's end twice: in whole seconds of the clock, rounded up, and
// exactly. Nobody waits for the roundings.
func TestFinerReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Millisecond) // just after a whole second rounding costs most
		const limit, window = 20, 2 * time.Second
		var mu sync.Mutex
		left, refused := 0, 0
		var ends time.Time
		b := newBase(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if !now.Before(ends) {
				left, ends = limit, now.Add(window)
			}
			h := http.Header{
				"Date":              {now.UTC().Format(http.TimeFormat)},
				"Retry-After":       {fmt.Sprint(float64(ends.Sub(now).Milliseconds()) / 1000)},
				"X-Ratelimit-Limit": {fmt.Sprint(limit)}, "X-Ratelimit-Reset": {fmt.Sprint(ends.Add(time.Second - 1).Unix())},
			}
			status := 200
			if left--; left < 0 {
				left, status = 0, 429
				refused++
			}
			h.Set("X-Ratelimit-Remaining", fmt.Sprint(left))
			return testnet.Answer(r, status, h, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{})
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 10 {
					mustGet(t, tr, "http://a/")
				}
			})
		}
		wg.Wait()
		if took, ideal := time.Since(start), 9*window; took > ideal*11/10 || refused > 2 {
			t.Errorf("took %v with %d refusals, ideal %v", took, refused, ideal)
		}
	})
}

// TestResetNowIsNoEnd: a server whose reset says when the next request may come says
// zero as long as something is left. That is no end of a window, after which all who
// wait might go.
func TestResetNowIsNoEnd(t *testing.T) {
	for _, dialect := range []dialect{xAlways, ietfAlways} {
		for _, trip := range []time.Duration{5 * time.Millisecond, 80 * time.Millisecond} {
			s := limitedServer{kind: slidingLog, dialect: dialect, quota: 17, window: 2 * time.Second, trip: trip, workers: 91, calls: 85}
			for range 8 { // the answers to what is under way at once come in any order
				if n := s.refusals(t, func(int) string { return "one" }); n > 3 {
					t.Errorf("%v: %d of %d calls refused, want three at most", s, n, s.calls)
				}
			}
		}
	}
}

// TestAWaitThatNeverEndsIsNoDay: a server that names the same wait in each answer has no instant
// in mind, however many answers came within a moment. It is asked again after MaxPause, whether
// it refuses some calls at random or bears far more than its reset says.
func TestAWaitThatNeverEndsIsNoDay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 17))
	began, used := time.Time{}, 0
	for _, test := range []struct {
		name  string
		every time.Duration // each of four callers calls
		days  int
		left  func(now time.Time) (left int, refused bool)
	}{
		{"every second call is refused", time.Minute, 3, func(time.Time) (int, bool) { return 0, r.IntN(2) == 0 }},
		{"a hundred a minute are served", time.Second, 1, func(now time.Time) (int, bool) {
			if now.Sub(began) >= time.Minute {
				began, used = now, 0
			}
			used++
			return max(0, 100-used), used > 100
		}},
	} {
		last, longest := time.Time{}, time.Duration(0)
		learnRun(t, throttle.Config{MaxWait: time.Hour}, func(_ *http.Request, now time.Time) *http.Response {
			if !last.IsZero() {
				longest = max(longest, now.Sub(last))
			}
			last = now
			n, refused := test.left(now)
			says := []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", strconv.Itoa(n), "X-RateLimit-Reset", "86400"}
			switch {
			case refused:
				return reply(429, says...)
			case n > 0:
				return reply(200, says...)
			}
			return reply(200)
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for start := time.Now(); time.Since(start) < time.Duration(test.days)*24*time.Hour; time.Sleep(test.every) {
						r, _ := http.NewRequest("GET", fmt.Sprintf("http://h/v%d", i%2), nil)
						if resp, err := rt.RoundTrip(r); err == nil {
							resp.Body.Close()
						}
					}
				})
			}
			wg.Wait()
		})
		if longest > 6*time.Minute {
			t.Errorf("%s: nothing was sent for %v, want at most MaxPause and a little", test.name, longest)
		}
	}
}

// TestResetsThatContradictThemselvesAreWaitedForEverShorter: a server that serves all and states
// another size, another rest and another reset in each answer says now and then that nothing is
// left for hours. Each request that is served long before shows that this means little.
func TestResetsThatContradictThemselvesAreWaitedForEverShorter(t *testing.T) {
	for _, hours := range []int{1, 24} {
		r := rand.New(rand.NewPCG(1, uint64(hours)))
		calls, lost := 0, 0
		learnRun(t, throttle.Config{}, func(*http.Request, time.Time) *http.Response {
			limit := 1 + r.IntN(1000)
			left := r.IntN(limit + 1)
			if r.IntN(10) == 0 {
				left = 0
			}
			return reply(200, "X-RateLimit-Limit", strconv.Itoa(limit), "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", strconv.Itoa(1+r.IntN(hours*3600)))
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			for start := time.Now(); time.Since(start) < 8*time.Hour; time.Sleep(5 * time.Second) {
				q, _ := http.NewRequest("GET", "http://h/v1", nil)
				if resp, err := rt.RoundTrip(q); err != nil {
					lost++
				} else {
					resp.Body.Close()
				}
				calls++
			}
		})
		if t.Logf("up to %d hours: %d of %d lost", hours, lost, calls); lost > calls/4 {
			t.Errorf("up to %d hours: %d of %d calls were lost, want a quarter at most", hours, lost, calls)
		}
	}
}
