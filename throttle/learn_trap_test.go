package throttle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// learnRun runs f in virtual time with a Transport over a server.
func learnRun(t *testing.T, c Config, answer func(r *http.Request, now time.Time) *http.Response, f func(t *testing.T, rt *Transport, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // Unix times of the year 2000 are not taken for such
		s := &server{trip: 40 * time.Millisecond, answer: answer}
		rt, err := New(s, c)
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

func TestTwoCredentialsDoNotPauseEachOther(t *testing.T) {
	n := 0
	learnRun(t, Config{}, func(r *http.Request, now time.Time) *http.Response {
		if n++; n == 1 {
			return reply(429, "Retry-After", "20")
		}
		return reply(200)
	}, func(t *testing.T, rt *Transport, _ *server) {
		one(t, rt, "http://h/v1", "Authorization", "Bearer a")
		if status, took := one(t, rt, "http://h/v1", "Authorization", "Bearer b"); status != 200 || took > time.Second {
			t.Errorf("the other credential got %d after %v, want 200 at once", status, took)
		}
		if status, took := one(t, rt, "http://h/v1", "Authorization", "Bearer a"); status != 200 || took < 19*time.Second {
			t.Errorf("the refused credential got %d after %v, want 200 after 20s", status, took)
		}
	})
}

func TestANamedLimitDoesNotStopOtherKinds(t *testing.T) {
	var zero time.Time
	learnRun(t, Config{}, func(r *http.Request, now time.Time) *http.Response {
		if zero.IsZero() {
			zero = now
		}
		if strings.HasPrefix(r.URL.Path, "/search/") {
			if now.Sub(zero) < 30*time.Second {
				return reply(403, "X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(zero, 30*time.Second), "X-RateLimit-Resource", "search")
			}
			return reply(200, "X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "29", "X-RateLimit-Reset", reset(zero, 90*time.Second), "X-RateLimit-Resource", "search")
		}
		return reply(200, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", reset(zero, time.Hour), "X-RateLimit-Resource", "core")
	}, func(t *testing.T, rt *Transport, _ *server) {
		one(t, rt, "http://h/repos/x")
		one(t, rt, "http://h/search/x")
		if status, took := one(t, rt, "http://h/repos/x"); status != 200 || took > time.Second {
			t.Errorf("another kind got %d after %v, want 200 at once", status, took)
		}
		if status, took := one(t, rt, "http://h/search/y"); status != 200 || took < 28*time.Second || took > 33*time.Second {
			t.Errorf("the limited kind got %d after %v, want 200 after 30s", status, took)
		}
	})
}

func TestRemainingWithoutReset(t *testing.T) {
	tokens, last := 20.0, time.Time{}
	learnRun(t, Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if !last.IsZero() {
			tokens = min(20, tokens+now.Sub(last).Seconds()*10)
		}
		last = now
		if tokens < 1 {
			return reply(429, "X-RateLimit-Remaining", "0")
		}
		tokens--
		return reply(200, "X-RateLimit-Remaining", strconv.Itoa(int(tokens)))
	}, func(t *testing.T, rt *Transport, s *server) {
		start := time.Now()
		failed := swarm(rt, 120, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused > 12 || took > 20*time.Second {
			t.Errorf("%d errors, %d refusals, %v; want 0, at most 12, at most 20s (10s is ideal)", failed, s.refused, took)
		}
	})
}

func TestRollingResets(t *testing.T) {
	var log []time.Time
	learnRun(t, Config{}, func(_ *http.Request, now time.Time) *http.Response {
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
	}, func(t *testing.T, rt *Transport, s *server) {
		start := time.Now()
		failed := swarm(rt, 200, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused > 4 || took > 35*time.Second {
			t.Errorf("%d errors, %d refusals, %v; want 0, at most 4, at most 35s (30s is ideal)", failed, s.refused, took)
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
		rt, err := New(s, Config{MaxWait: 10 * time.Minute})
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
	learnRun(t, Config{}, func(*http.Request, time.Time) *http.Response { return reply(200) },
		func(t *testing.T, rt *Transport, _ *server) {
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

func TestAUnitThatIsNotCountedPausesAndIsAsked(t *testing.T) {
	n := 0
	learnRun(t, Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 1 {
			return reply(429, "X-RateLimit-Limit-Tokens", "1000", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6s")
		}
		return reply(200, "X-RateLimit-Limit-Tokens", "1000", "X-RateLimit-Remaining-Tokens", "10", "X-RateLimit-Reset-Tokens", "6s")
	}, func(t *testing.T, rt *Transport, _ *server) {
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

func TestOneSlowEndpointDoesNotSlowOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleepy{server: server{trip: 20 * time.Millisecond}}
		s.work = func(r *http.Request) (time.Duration, *http.Response) {
			if strings.HasPrefix(r.URL.Path, "/slow") {
				return time.Hour, nil
			}
			return 10 * time.Millisecond, nil
		}
		rt, err := New(s, Config{})
		if err != nil {
			t.Fatal(err)
		}
		swarm(rt, 400, "http://h/fast")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 30 {
				r, _ := http.NewRequest("GET", "http://h/slow", nil)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, _ = rt.RoundTrip(r.WithContext(ctx))
				cancel()
			}
		}()
		time.Sleep(20 * time.Second)
		start := time.Now()
		swarm(rt, 400, "http://h/fast")
		if took := time.Since(start); took > time.Second {
			t.Errorf("400 quick requests took %v beside a dead endpoint, want well under a second", took)
		}
		<-done
	})
}

func TestAnHonestHourIsWaitedFor(t *testing.T) {
	var zero time.Time
	left := 5
	limiter := func(_ *http.Request, now time.Time) *http.Response {
		if zero.IsZero() {
			zero = now.Truncate(time.Second)
		}
		gone := now.Sub(zero)
		if gone >= time.Hour {
			return reply(200, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", reset(zero, 2*time.Hour))
		}
		if left == 0 {
			return reply(403, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(zero, time.Hour))
		}
		left--
		return reply(200, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", reset(zero, time.Hour))
	}
	learnRun(t, Config{}, limiter, func(t *testing.T, rt *Transport, s *server) {
		for range 5 {
			one(t, rt, "http://h/v1")
		}
		start := time.Now()
		r, _ := http.NewRequest("GET", "http://h/v1", nil)
		_, err := rt.RoundTrip(r)
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter < 58*time.Minute || time.Since(start) > 0 {
			t.Fatalf("got %v after %v, want a refusal at once that names the hour", err, time.Since(start))
		}
		if status, took := one(t, patient{rt}, "http://h/v1"); status != 200 || took < 59*time.Minute || took > 61*time.Minute || s.refused > 0 {
			t.Errorf("got %d after %v and %d refusals, want 200 after the hour and none", status, took, s.refused)
		}
	})
}

func TestRefusalsThatProlongThePenalty(t *testing.T) {
	var last time.Time
	used := 0
	learnRun(t, Config{MaxWait: 10 * time.Minute}, func(_ *http.Request, now time.Time) *http.Response {
		if now.Sub(last) >= 2*time.Second {
			used = 0
		}
		if used++; used > 20 {
			last = now // every refused hit begins the window anew
			return reply(429)
		}
		if used == 1 {
			last = now
		}
		return reply(200)
	}, func(t *testing.T, rt *Transport, s *server) {
		failed := swarm(rt, 100, "http://h/v1")
		t.Logf("%d refused", s.refused)
		if failed > 0 || s.good != 100 || s.refused > 100 {
			t.Errorf("%d answers, %d errors, %d refusals, want 100, 0, at most one per answer", s.good, failed, s.refused)
		}
	})
}

func TestPaceSpreadsAWindow(t *testing.T) {
	var zero time.Time
	left := 60
	var sent []time.Time
	learnRun(t, Config{Pace: true}, func(_ *http.Request, now time.Time) *http.Response {
		if zero.IsZero() {
			zero = now.Truncate(time.Second)
		}
		sent = append(sent, now)
		left--
		return reply(200, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", reset(zero, time.Minute))
	}, func(t *testing.T, rt *Transport, _ *server) {
		swarm(rt, 50, "http://h/v1")
		if took := sent[len(sent)-1].Sub(sent[0]); took < 45*time.Second || took > 58*time.Second {
			t.Errorf("50 of 60 a minute took %v, want about 50s", took)
		}
	})
}

func TestDisableLearningKeepsPauses(t *testing.T) {
	n := 0
	learnRun(t, Config{DisableLearning: true}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 3 {
			return reply(429, "Retry-After", "5")
		}
		return reply(200, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(now, time.Minute))
	}, func(t *testing.T, rt *Transport, _ *server) {
		for range 3 {
			if _, took := one(t, rt, "http://h/v1"); took > time.Second {
				t.Errorf("waited %v for a stated limit, want nothing learned", took)
			}
		}
		if _, took := one(t, rt, "http://h/v1"); took < 5*time.Second {
			t.Errorf("waited %v after a refusal, want its 5s", took)
		}
	})
}

func TestAThousandOnAFreshHost(t *testing.T) {
	used, until := 0, time.Time{}
	learnRun(t, Config{MaxWait: 5 * time.Minute}, func(_ *http.Request, now time.Time) *http.Response {
		if now.After(until) {
			used, until = 0, now.Add(time.Minute)
		}
		if used++; used > 500 {
			return reply(429, "Retry-After", strconv.Itoa(int(until.Sub(now).Seconds())+1))
		}
		return reply(200)
	}, func(t *testing.T, rt *Transport, s *server) {
		failed := swarm(rt, 1000, "http://h/v1")
		if failed > 0 || s.good != 1000 || s.refused > 70 {
			t.Errorf("%d answers, %d errors, %d refusals, want 1000, 0, at most about 64", s.good, failed, s.refused)
		}
	})
}

func TestWhatWasLearnedIsTold(t *testing.T) {
	var told []string
	c := Config{OnLearn: func(l Learned) { told = append(told, l.Why) }}
	learnRun(t, c, func(_ *http.Request, now time.Time) *http.Response {
		return reply(200, "X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "12", "X-RateLimit-Reset", reset(now, time.Minute))
	}, func(t *testing.T, rt *Transport, _ *server) {
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

// patient lets requests wait for hours.
type patient struct{ *Transport }

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.Transport.RoundTrip(r.WithContext(WithMaxWait(r.Context(), 10*time.Hour)))
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

func restrictionsOf(rt *Transport) string {
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
	learnRun(t, Config{}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 2 {
			return reply(429, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", reset(now, time.Hour))
		}
		return reply(200, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", reset(now, time.Hour))
	}, func(t *testing.T, rt *Transport, _ *server) {
		one(t, rt, "http://h/v1")
		one(t, rt, "http://h/v1")
		if status, took := one(t, rt, "http://h/v1"); status != 200 || took > 5*time.Second {
			t.Errorf("got %d after %v, want the reset of a limit with plenty left not waited for", status, took)
		}
	})
}
