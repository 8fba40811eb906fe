package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// polled is a server that answers what is called poll when it has something to
// say, and everything else at once.
func polled(poll, quick time.Duration, answer func(*http.Request) (*http.Response, error)) *base {
	return newBase(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("poll") {
			if err := testnet.Wait(r.Context(), poll); err != nil {
				return nil, err
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}
		if err := testnet.Wait(r.Context(), quick); err != nil {
			return nil, err
		}
		return answer(r)
	})
}

func ok(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 200, nil, nil), nil }

// called sends a request and returns how long it took.
func called(t *testing.T, rt http.RoundTripper, method, url string) time.Duration {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if resp, err := rt.RoundTrip(r); err == nil {
		resp.Body.Close()
	}
	return time.Since(start)
}

// TestLongPollsHoldUpNobody: a call to a host that was never met goes out in
// less than a second however many long polls are out, of its own kind or another.
func TestLongPollsHoldUpNobody(t *testing.T) {
	for _, polls := range []int{4, 20} {
		for _, call := range []string{"POST http://h/send", "GET http://h/updates"} {
			t.Run(fmt.Sprint(polls, " beside ", call), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tr := newTransport(t, polled(25*time.Second, 20*time.Millisecond, ok), throttle.Config{})
					var wg sync.WaitGroup
					for range polls {
						wg.Go(func() { called(t, tr, "GET", "http://h/updates?poll") })
					}
					synctest.Wait()
					var method, url string
					fmt.Sscan(call, &method, &url)
					if took := called(t, tr, method, url); took >= time.Second {
						t.Errorf("the call took %v, want less than a second", took)
					}
					wg.Wait()
				})
			})
		}
	}
}

// TestALossBesideLongPollsHoldsUpNobody: on a host that is known, one failure
// while long polls are out makes none of the calls after it wait.
func TestALossBesideLongPollsHoldsUpNobody(t *testing.T) {
	for _, known := range []int{10, 100, 1100} {
		for _, polls := range []int{1, 3} {
			for _, out := range []time.Duration{0, 5 * time.Second} { // for how long when it fails
				for _, what := range []string{"refused", "503"} {
					t.Run(fmt.Sprintf("%d answers, %d polls for %v, %s", known, polls, out, what), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { lossesBesidePolls(t, known, polls, out, 1, what, 20*time.Millisecond) })
					})
				}
			}
		}
	}
}

// TestLossesBesideLongPollsHoldUpNobody: nor do many failures make a call wait for a second, if
// the polls have been out for long enough to be known as such.
func TestLossesBesideLongPollsHoldUpNobody(t *testing.T) {
	for _, takes := range []time.Duration{20 * time.Millisecond, time.Second} {
		for _, polls := range []int{1, 4, 24} {
			for _, losses := range []int{2, 3, 7} {
				for _, what := range []string{"refused", "503"} {
					if what == "503" && takes == time.Second {
						continue // the host may mean the polls, and works for long on what it serves
					}
					t.Run(fmt.Sprintf("%d polls, %d times %s after %v", polls, losses, what, takes), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { lossesBesidePolls(t, 1100, polls, 5*time.Second, losses, what, takes) })
					})
				}
			}
		}
	}
}

func lossesBesidePolls(t *testing.T, known, polls int, out time.Duration, losses int, what string, takes time.Duration) {
	fails := false
	tr := newTransport(t, polled(55*time.Second, takes, func(r *http.Request) (*http.Response, error) {
		switch {
		case fails && what == "refused":
			return nil, errors.New("connection refused")
		case fails:
			return testnet.Answer(r, 503, nil, nil), nil
		}
		return ok(r)
	}), throttle.Config{})
	for range known {
		called(t, tr, "GET", "http://h/updates")
	}
	var wg sync.WaitGroup
	for range polls {
		wg.Go(func() { called(t, tr, "GET", "http://h/updates?poll") })
	}
	synctest.Wait()
	time.Sleep(out)
	longest := takes
	if losses > 1 {
		longest += time.Second
	}
	for i := range losses + 5 {
		fails = i < losses
		if took := called(t, tr, "GET", "http://h/updates"); took > longest {
			t.Errorf("call %d after the first loss took %v, want at most %v", i, took, longest)
		}
	}
	wg.Wait()
}

// TestCallsThatWaitForOneAnother: a server may answer none of some calls before
// all have come.
func TestCallsThatWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 25
		all, come := make(chan struct{}), 0
		var mu sync.Mutex
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			if come++; come == calls {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
				return ok(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}), throttle.Config{})
		start := time.Now()
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() { mustGet(t, tr, "http://h/").Body.Close() })
		}
		wg.Wait()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%d calls took %v, want at most 2s", calls, took)
		}
	})
}

// sleepy is a server that has work to do before it answers.
type sleepy struct {
	server
	work func(r *http.Request) (time.Duration, *http.Response)
	busy int
}

func (s *sleepy) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(s.trip / 2)
	s.mu.Lock()
	d, resp := s.work(r)
	if resp == nil {
		s.busy++
	} else {
		s.refused++
	}
	s.mu.Unlock()
	if resp == nil {
		if err := testnet.Wait(r.Context(), d); err != nil {
			s.mu.Lock()
			s.busy--
			s.mu.Unlock()
			return nil, err
		}
		s.mu.Lock()
		s.busy--
		s.good++
		s.mu.Unlock()
		resp = reply(200)
	}
	time.Sleep(s.trip / 2)
	resp.Request, resp.Body = r, http.NoBody
	return resp, nil
}

func TestAConcurrencyLimitCutsRequestsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleepy{server: server{trip: 20 * time.Millisecond}}
		s.work = func(*http.Request) (time.Duration, *http.Response) {
			if s.busy >= 2 {
				return 0, reply(429)
			}
			return time.Second, nil
		}
		rt, err := throttle.New(s, throttle.Config{MaxWait: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		failed := swarm(rt, 60, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused > 20 || took > 45*time.Second {
			t.Errorf("%d errors, %d refusals, %v; want 0, at most 20, at most 45s (30s is ideal)", failed, s.refused, took)
		}
	})
}

func TestOpenStreamsTakeNoPlace(t *testing.T) {
	learnRun(t, throttle.Config{}, func(*http.Request, time.Time) *http.Response { return reply(200) },
		func(t *testing.T, rt *throttle.Transport, _ *server) {
			start := time.Now()
			for range 200 {
				r, _ := http.NewRequest("GET", "http://h/events", nil)
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close() // all stay open until the end
			}
			if took := time.Since(start); took > 9*time.Second {
				t.Errorf("200 streams took %v to open, want a round trip each", took)
			}
		})
}

func TestAThousandOnAFreshHost(t *testing.T) {
	used, until := 0, time.Time{}
	learnRun(t, throttle.Config{MaxWait: 5 * time.Minute}, func(_ *http.Request, now time.Time) *http.Response {
		if now.After(until) {
			used, until = 0, now.Add(time.Minute)
		}
		if used++; used > 500 {
			return reply(429, "Retry-After", strconv.Itoa(int(until.Sub(now).Seconds())+1))
		}
		return reply(200)
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		failed := swarm(rt, 1000, "http://h/v1")
		if failed > 0 || s.good != 1000 || s.refused > 70 {
			t.Errorf("%d answers, %d errors, %d refusals, want 1000, 0, at most about 64", s.good, failed, s.refused)
		}
	})
}

// The first request of a kind waits for those of other kinds at a new host for less than a
// second, but a host that answers nobody gets no more than sixteen for that.
func TestAKindHasAHeadStart(t *testing.T) {
	for _, test := range []struct {
		kinds int
		sent  int32
	}{{1, 1}, {100, 16}} {
		synctest.Test(t, func(t *testing.T) {
			var sent, polls atomic.Int32
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/poll" {
					polls.Add(1)
				} else {
					sent.Add(1)
				}
				return nil, testnet.Wait(r.Context(), time.Hour)
			}), throttle.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			call := func(path string) {
				wg.Go(func() { testnet.Get(t, ctx, tr, "http://h"+path) })
			}
			for range 200 {
				call("/poll")
			}
			synctest.Wait()
			for i := range test.kinds {
				call(fmt.Sprintf("/kind%c%c", 'a'+i/26, 'a'+i%26))
			}
			time.Sleep(time.Second)
			if sent.Load() != test.sent || polls.Load() > 24 {
				t.Errorf("of %d kinds %d were sent after a second, want %d; and %d polls, want 24 at most", test.kinds, sent.Load(), test.sent, polls.Load())
			}
			cancel()
			wg.Wait()
		})
	}
}
