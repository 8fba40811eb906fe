package chaintest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
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
	if err := testnet.Wait(r.Context(), s.way); err != nil {
		return nil, err
	}
	s.mu.Lock()
	ok := s.allow(r, time.Since(s.start))
	if !ok {
		s.refused++
	}
	s.mu.Unlock()
	if err := testnet.Wait(r.Context(), s.way); err != nil {
		return nil, err
	}
	if !ok {
		return testnet.Answer(r, 429, s.header.Clone(), testnet.NewBody("no")), nil
	}
	return testnet.Answer(r, 200, nil, nil), nil
}

// fixedWindow lets n requests pass in each window, the first of which begins
// phase before the server.
func fixedWindow(n int, per, phase time.Duration) func(*http.Request, time.Duration) bool {
	var number time.Duration = -1
	passed := 0
	return func(_ *http.Request, now time.Duration) bool {
		if i := (now + phase) / per; i != number {
			number, passed = i, 0
		}
		passed++
		return passed <= n
	}
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
					t.Errorf("%d of %d were lost to a guess", lost, test.jobs)
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
