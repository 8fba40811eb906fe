package chaintest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// limited is a server that refuses what a limit does not let through.
type limited struct {
	mu      sync.Mutex
	start   time.Time
	refused int
	way     time.Duration // to it, and back
	allow   func(r *http.Request, now time.Duration) bool
	header  http.Header // of refusals
}

func (s *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, func() time.Duration { return s.way }, func() (status int, h http.Header) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.allow(r, time.Since(s.start)) {
			return http.StatusOK, nil
		}
		s.refused++
		return http.StatusTooManyRequests, s.header.Clone()
	})
}

// fixedWindow lets n requests pass in each window, the first of which begins
// phase before the server.
func fixedWindow(n int, per, phase time.Duration) func(*http.Request, time.Duration) bool {
	w := windowed{kind: "clock", size: n, per: per}
	return func(_ *http.Request, now time.Duration) bool { return w.draw(time.Time{}.Add(phase + now)) }
}

// slidingCounter lets a request pass if at most n came in the window before,
// refused ones included, as haproxy's http_req_rate counts: this window's and
// the part of the last one's that has not left.
func slidingCounter(n int, per time.Duration) func(*http.Request, time.Duration) bool {
	var number time.Duration
	var last, present float64
	return func(_ *http.Request, now time.Duration) bool {
		if i := now / per; i != number {
			if last = present; i > number+1 {
				last = 0
			}
			number, present = i, 0
		}
		present++
		return present+last*float64(per-now%per)/float64(per) <= float64(n)
	}
}

// lostOf sends jobs from workers and returns how many did not end with a 200.
func lostOf(t *testing.T, rt http.RoundTripper, jobs, workers int) int {
	t.Helper()
	var left, lost atomic.Int64
	left.Store(int64(jobs))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				resp, err := rt.RoundTrip(get(t, "http://h/"))
				if err != nil || resp.StatusCode != 200 {
					lost.Add(1)
				}
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
	return int(lost.Load())
}

// A rate that refusals show, and pauses that nobody asked for, refuse nobody:
// whoever has time waits, and finds that there was room in time.
func TestAGuessRefusesNobody(t *testing.T) {
	for _, test := range []struct {
		name    string
		allow   func(*http.Request, time.Duration) bool
		hint    string
		way     time.Duration
		jobs    int
		workers int
	}{
		{"20 per 2 s, refused ones counted", slidingCounter(20, 2*time.Second), "2", 20 * time.Millisecond, 120, 30},
		{"the same, near by", slidingCounter(20, 2*time.Second), "2", time.Millisecond, 120, 120},
		{"80 per 5 s, for 1 s", fixedWindow(80, 5*time.Second, time.Second), "1", 20 * time.Millisecond, 400, 64},
		{"80 per 5 s, for 2 s", fixedWindow(80, 5*time.Second, 2*time.Second), "1", time.Millisecond, 400, 64},
		{"80 per 5 s, new", fixedWindow(80, 5*time.Second, 0), "1", 20 * time.Millisecond, 400, 100},
		{"100 a minute, for 15 s", fixedWindow(100, time.Minute, 15*time.Second), "", 20 * time.Millisecond, 130, 30},
		{"100 a minute, for 5 s", fixedWindow(100, time.Minute, 5*time.Second), "", 20 * time.Millisecond, 130, 30},
		{"100 a minute, new", fixedWindow(100, time.Minute, 0), "", 20 * time.Millisecond, 130, 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limited{start: time.Now(), way: test.way, allow: test.allow}
				if test.hint != "" {
					s.header = http.Header{"Retry-After": {test.hint}}
				}
				rt := must(weir.New(s, weir.Config{}))(t)
				lost := lostOf(t, rt, test.jobs, test.workers)
				if lost > 0 {
					t.Errorf("%d of %d calls were refused because of a guess, want none", lost, test.jobs)
				}
			})
		})
	}
}

// A refused request whose next pause is a guess waits in the queue while it has
// time, and is served if the pause ends before. If it does not, the caller gets
// the answer in hand when his time is over, not before.
func TestARetryWaitsOutAGuess(t *testing.T) {
	for name, resume := range map[string]bool{"the pause ends early": true, "the pause goes on": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limited{start: time.Now(), allow: func(_ *http.Request, now time.Duration) bool { return now > 19*time.Second }}
				rt := must(weir.New(s, weir.Config{}))(t)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the last pauses are of 3 s or more
				defer cancel()
				if resume {
					time.AfterFunc(19500*time.Millisecond, func() { rt.Throttle().Resume("h") })
				}
				resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
				took := time.Since(s.start)
				switch {
				case err != nil:
					t.Error(err)
				case resume && resp.StatusCode != 200:
					t.Errorf("got %d after %v, want 200 when the pause has ended", resp.StatusCode, took)
				case !resume && resp.StatusCode != 200 && took < 19*time.Second:
					t.Errorf("given up after %v, want 20s at least but for the time that an answer takes", took)
				}
			})
		})
	}
}

// TestOneAnswerDoesNotCorroborateItself: what is said twice in one refusal, or in
// those of one burst, is said once. It is obeyed for no longer than MaxPause.
func TestOneAnswerDoesNotCorroborateItself(t *testing.T) {
	for _, burst := range []int64{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(26 * 365 * 24 * time.Hour)
			var n atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(50 * time.Millisecond)
				if n.Add(1) > burst {
					return testnet.Answer(r, 200, nil, nil), nil
				}
				return testnet.Answer(r, 429, http.Header{
					"Retry-After": {"86400"}, "X-Ratelimit-Limit": {"1000"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"86400"},
				}, nil), nil
			}), weir.Config{}))(t)
			var refused sync.WaitGroup
			for range burst {
				refused.Go(func() {
					if resp, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil {
						resp.Body.Close()
					}
				})
			}
			refused.Wait()
			lost, took := load{callers: 5, calls: 2, wait: 48 * time.Hour}.round(t, rt)
			if lost > 0 || took > 5*time.Minute+time.Second {
				t.Errorf("after %d refusals at once: %d lost, %v; want none, within MaxPause", burst, lost, took)
			}
		})
	}
}

// TestTwoAnswersCorroborateEachOther: when the one that asks after MaxPause is told
// the same instant, that instant is waited for.
func TestTwoAnswersCorroborateEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour)
		opens := time.Now().Add(3 * time.Hour)
		var refused atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Millisecond)
			left := time.Until(opens)
			if left <= 0 {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			refused.Add(1)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {strconv.Itoa(int(left.Seconds()) + 1)}}, nil), nil
		}), weir.Config{Retry: retry.Config{MaxDelay: 48 * time.Hour}}))(t)
		lost, took := load{callers: 5, calls: 2, wait: 48 * time.Hour}.round(t, rt)
		if n := refused.Load(); lost > 0 || n > 6 || took < 3*time.Hour || took > 3*time.Hour+time.Minute {
			t.Errorf("%d lost, %d refusals, %v; want none, one for each of five and one more, three hours", lost, n, took)
		}
	})
}

// TestWhatTwoAnswersSaidRefusesAtOnce: an instant that is corroborated is certain,
// so whoever cannot wait for it is told at once, also when MaxPause is nearly over.
func TestWhatTwoAnswersSaidRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour)
		opens := time.Now().Add(3 * time.Hour)
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Millisecond)
			left := time.Until(opens)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {strconv.Itoa(int(left.Seconds()) + 1)}}, nil), nil
		}), weir.Config{}))(t)
		for range 2 { // the second one asks when MaxPause is over
			if resp, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil {
				resp.Body.Close()
			}
			time.Sleep(5*time.Minute + 10*time.Second)
		}
		begin := time.Now()
		if _, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil || time.Since(begin) > 0 {
			t.Errorf("told %v after %v, want a refusal at once", err, time.Since(begin))
		}
	})
}
