package throttle_test

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
	"github.com/weirhttp/weir/throttle"
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

// bucketStating is a token bucket that tells in the fields of the IETF's draft what
// is left.
func bucketStating(rate, burst float64) func(*http.Request, time.Time) *http.Response {
	return bucketStatingAsOf(func(time.Time) (float64, float64) { return rate, burst })
}

// bucketStatingAsOf is that, of a bucket whose rate and size are those of the moment.
func bucketStatingAsOf(of func(now time.Time) (rate, burst float64)) func(*http.Request, time.Time) *http.Response {
	last := time.Now()
	_, tokens := of(last)
	return func(_ *http.Request, now time.Time) *http.Response {
		rate, burst := of(now)
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
		s := &server{trip: 40 * time.Millisecond, answer: bucketStating(20, 20)}
		rt, err := throttle.New(s, throttle.Config{})
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
		}), throttle.Config{})
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
		var e *throttle.Error
		if err := send("a"); !errors.As(err, &e) || e.RetryAfter > 30*sec || e.RetryAfter < 28*sec {
			t.Errorf("got %v", err)
		}
	})
}

// learnRun runs f in virtual time with a Transport over a server.
func learnRun(t *testing.T, c throttle.Config, answer func(r *http.Request, now time.Time) *http.Response, f func(t *testing.T, rt *throttle.Transport, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // Unix times of the year 2000 are not taken for such
		s := &server{trip: 40 * time.Millisecond, answer: answer}
		rt, err := throttle.New(s, c)
		if err != nil {
			t.Fatal(err)
		}
		f(t, rt, s)
	})
}

// one sends a request and returns its status and how long it took.
func one(t *testing.T, rt http.RoundTripper, url string, pairs ...string) (int, time.Duration) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	start := time.Now()
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, time.Since(start)
}

func reset(now time.Time, d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }

func TestAUnitThatIsNotCountedPausesAndIsAsked(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 1 {
			return reply(429, "X-RateLimit-Limit-Tokens", "1000", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6s")
		}
		return reply(200, "X-RateLimit-Limit-Tokens", "1000", "X-RateLimit-Remaining-Tokens", "10", "X-RateLimit-Reset-Tokens", "6s")
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		one(t, rt, "http://h/v1")
		if status, took := one(t, rt, "http://h/v1"); status != 200 || took < 5*time.Second || took > 10*time.Second {
			t.Errorf("got %d after %v, want 200 after the reset", status, took)
		}
		for range 10 {
			if _, took := one(t, rt, "http://h/v1"); took > time.Second {
				t.Fatalf("waited %v for a unit that nobody counts", took)
			}
		}
	})
}

// patient lets requests wait for hours.
type patient struct{ *throttle.Transport }

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.Transport.RoundTrip(r.WithContext(throttle.WithMaxWait(r.Context(), 10*time.Hour)))
}

// once sends n requests, one try each.
func once(rt http.RoundTripper, n int, url string) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r, _ := http.NewRequest("GET", url, nil)
			if resp, err := rt.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}

func restrictionsOf(rt *throttle.Transport) string {
	var all []string
	for _, h := range rt.Stats().Hosts {
		for _, r := range h.Restrictions {
			all = append(all, r.Why)
		}
	}
	return strings.Join(all, "\n")
}

func TestARefusalWithPlentyLeftIsOfAnotherLimit(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 2 {
			return reply(429, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", reset(now, time.Hour))
		}
		return reply(200, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", reset(now, time.Hour))
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		one(t, rt, "http://h/v1")
		one(t, rt, "http://h/v1")
		if status, took := one(t, rt, "http://h/v1"); status != 200 || took > 5*time.Second {
			t.Errorf("got %d after %v, want the reset of a limit with plenty left not waited for", status, took)
		}
	})
}

func TestWhatWasLearnedIsTold(t *testing.T) {
	var told []string
	c := throttle.Config{OnLearn: func(l throttle.Learned) { told = append(told, l.Why) }}
	learnRun(t, c, func(_ *http.Request, now time.Time) *http.Response {
		return reply(200, "X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "12", "X-RateLimit-Reset", reset(now, time.Minute))
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		one(t, rt, "http://api.example.com/v1")
		want := "api.example.com: 12 of 50 left until " + time.Now().Add(time.Minute).Format("15:04") // seconds depend on roundings
		if len(told) != 1 || !strings.HasPrefix(told[0], want) || !strings.HasSuffix(told[0], ", said by X-RateLimit-Limit") {
			t.Errorf("told %q, want one that begins with %q", told, want)
		}
		if got := restrictionsOf(rt); !strings.Contains(got, want) {
			t.Errorf("restrictions %q, want %q", got, want)
		}
	})
}

// TestABucketWhoseRateChangesStaysABucket: a refusal or two, by jitter or because the
// rate was changed, do not make a window of what was seen to flow. As a window it would
// be spent in bursts, of which half are refused.
func TestABucketWhoseRateChangesStaysABucket(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &server{trip: 40 * time.Millisecond, jitter: .25, answer: bucketStatingAsOf(func(now time.Time) (rate, burst float64) {
				rate = []float64{50, 25, 100}[min(2, int(now.Sub(start)/(20*time.Second)))]
				return rate, rate
			})}
			tr := newTransport(t, s, throttle.Config{MaxWait: time.Hour})
			together(64, 50*20+25*20+100*30, func(int) bool {
				for mustGet(t, tr, "http://h/").StatusCode != 200 {
				}
				return true
			})
			if took := time.Since(start); s.refused > 60 || took > 75*time.Second {
				t.Errorf("%d refused in %v, want at most 60 and 75s", s.refused, took)
			}
		})
	}
}
