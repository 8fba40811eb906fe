package throttle

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// server is a simulated API: it answers after a round trip, and decides when
// half of that is over.
type server struct {
	mu      sync.Mutex
	trip    time.Duration
	jitter  float64 // of each way, as a part of it
	answer  func(r *http.Request, now time.Time) *http.Response
	good    int
	refused int
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	time.Sleep(s.leg())
	s.mu.Lock()
	resp := s.answer(r, time.Now())
	if resp.StatusCode < 400 {
		s.good++
	} else {
		s.refused++
	}
	s.mu.Unlock()
	time.Sleep(s.leg())
	resp.Request = r
	resp.Body = io.NopCloser(strings.NewReader(""))
	return resp, nil
}

// leg is how long a request takes one way.
func (s *server) leg() time.Duration {
	return time.Duration((1 + s.jitter*(2*rand.Float64()-1)) * float64(s.trip/2))
}

func reply(status int, pairs ...string) *http.Response {
	r := &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	return r
}

// stated is a token bucket that tells in the fields of the IETF's draft what
// is left.
func stated(rate, burst float64) func(*http.Request, time.Time) *http.Response {
	tokens, last := burst, time.Now()
	return func(_ *http.Request, now time.Time) *http.Response {
		tokens = min(burst, tokens+now.Sub(last).Seconds()*rate)
		last = now
		status := 200
		if tokens >= 1-1e-9 {
			tokens--
		} else {
			status = 429
		}
		resp := reply(status, "RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=1`, int(rate)),
			"RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, int(tokens+1e-9), int(math.Ceil((burst-tokens)/rate))))
		if status == 429 {
			resp.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil((1-tokens)/rate))))
		}
		return resp
	}
}

// swarm sends n requests through rt from as many goroutines, each until it is
// answered without a refusal, and returns how many errors there were.
func swarm(rt http.RoundTripper, n int, url string, pairs ...string) (failed int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wg.Go(func() {
			for range 20 {
				r, _ := http.NewRequest("GET", url, nil)
				for i := 0; i+1 < len(pairs); i += 2 {
					r.Header.Set(pairs[i], pairs[i+1])
				}
				resp, err := rt.RoundTrip(r)
				if err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
					return
				}
				resp.Body.Close()
				if resp.StatusCode < 400 {
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}

func TestAStatedQuotaIsSpentWithoutRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{trip: 40 * time.Millisecond, answer: stated(20, 20)}
		rt, err := New(s, Config{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		failed := swarm(rt, 200, "http://api.example.com/v1/items")
		took := time.Since(start)
		t.Logf("%v, %d refused", took, s.refused)
		if failed > 0 || s.good != 200 || s.refused > 4 || took > 9500*time.Millisecond {
			t.Errorf("got %d answers, %d errors, %d refusals in %v, want 200, 0, at most 4 in 9.5s", s.good, failed, s.refused, took)
		}
	})
}

// A server that says how many requests are left binds each credential by its
// own count, and none by another's.
func TestSpentQuotasOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := map[string]string{"a": "0", "b": "5"}
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {left[r.Header.Get("Authorization")]}, "X-Ratelimit-Reset": {"30"}}, nil), nil
		}), Config{})
		send := func(who string) error {
			r, _ := http.NewRequestWithContext(police(t), "GET", "http://h/x", nil)
			r.Header.Set("Authorization", who)
			_, err := tr.RoundTrip(r)
			return err
		}
		for _, who := range []string{"a", "b", "b"} {
			if err := send(who); err != nil {
				t.Fatal(err)
			}
		}
		var e *Error
		if err := send("a"); !errors.As(err, &e) || e.RetryAfter > 30*sec || e.RetryAfter < 28*sec {
			t.Errorf("got %v", err)
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
