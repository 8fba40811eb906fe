package throttle

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
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
					tr := newTransport(t, polled(25*time.Second, 20*time.Millisecond, ok), Config{})
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
						synctest.Test(t, func(t *testing.T) { lossBesidePolls(t, known, polls, out, what) })
					})
				}
			}
		}
	}
}

func lossBesidePolls(t *testing.T, known, polls int, out time.Duration, what string) {
	fails := false
	tr := newTransport(t, polled(25*time.Second, 20*time.Millisecond, func(r *http.Request) (*http.Response, error) {
		switch {
		case fails && what == "refused":
			return nil, errors.New("connection refused")
		case fails:
			return testnet.Answer(r, 503, nil, nil), nil
		}
		return ok(r)
	}), Config{})
	for range known {
		called(t, tr, "GET", "http://h/updates")
	}
	var wg sync.WaitGroup
	for range polls {
		wg.Go(func() { called(t, tr, "GET", "http://h/updates?poll") })
	}
	synctest.Wait()
	time.Sleep(out)
	fails = true
	called(t, tr, "GET", "http://h/updates")
	fails = false
	for i := range 5 {
		if took := called(t, tr, "GET", "http://h/updates"); took > 20*time.Millisecond {
			t.Errorf("call %d after the loss took %v, want 20ms", i, took)
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
		}), Config{})
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

// An answer usually comes within its mean time and twice the mean distance from
// it; a deadline is for that, too.
func TestUsualTimeOfAnAnswer(t *testing.T) {
	if got := (&slowStart{rtt: 5 * sec, off: sec}).usual(); got != 7*sec {
		t.Errorf("got %v", got)
	}
	if got := (&slowStart{}).usual(); got != 0 {
		t.Errorf("of a fresh host: %v", got)
	}
}
