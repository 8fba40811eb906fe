package throttle_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Two requests are refused together, and the answer that comes last asks for a
// longer pause: those who cannot wait that long are refused at once, OnLearn is
// told, and the flow resumes at its shaped rate.
func TestALaterAnswerProlongsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/" {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			pause, _ := strconv.Atoi(r.URL.Path[1:])
			time.Sleep(4*time.Second + time.Duration(pause)*20*time.Millisecond)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {r.URL.Path[1:]}}, nil), nil
		})
		start := time.Now()
		var told atomic.Int32
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("10/s burst 9"), DisableLearning: true, OnLearn: func(throttle.Learned) { told.Add(1) }})
		var wg sync.WaitGroup
		for _, pause := range []string{"4", "50"} {
			wg.Go(func() { mustGet(t, tr, "http://h/"+pause) })
		}
		time.Sleep(4500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the first pause ends within it
		defer cancel()
		var e *throttle.Error
		if _, err := get(t, ctx, tr, "http://h/"); !errors.As(err, &e) || e.Reason != throttle.Paused {
			t.Errorf("got %v, want a refusal because of the pause", err)
		}
		if at := time.Since(start); at != 5*time.Second {
			t.Errorf("refused after %v, want 5s", at)
		}
		wg.Wait()
		if n := told.Load(); n != 2 {
			t.Errorf("%d pauses were told, want 2", n)
		}
		for range 3 {
			wg.Go(func() { mustGet(t, tr, "http://h/") })
		}
		wg.Wait()
		end := 55 * time.Second
		sameTimes(t, b.Times()[2:], end, end+100*time.Millisecond, end+200*time.Millisecond)
	})
}

// A pause takes what the budget had saved up, also from one who has it already
// and waits for something else: it goes when that is there again.
func TestAPauseReachesThoseWhoHavePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/refuse" {
				time.Sleep(23 * time.Second)
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"3"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("6/m burst 2, 60 tokens/m burst 30"), DisableLearning: true})
		for range settledIn {
			get(t, throttle.WithCost(t.Context(), throttle.Cost{requests: 0}), tr, "http://h/")
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			get(t, throttle.WithCost(t.Context(), throttle.Cost{requests: 2, "tokens": 55}), tr, "http://h/refuse")
		})
		synctest.Wait()
		// The requests are there after 20 s, the token after 26. By then, when
		// the pause ends, there is one request.
		if _, err := get(t, throttle.WithCost(t.Context(), throttle.Cost{requests: 2, "tokens": 1}), tr, "http://h/"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		sameTimes(t, b.Times()[settledIn+1:], 36*time.Second)
	})
}

// Who is refused because of the server's pause is told so, whatever the pause
// takes from the budget.
func TestAServersPauseIsWhy(t *testing.T) {
	for _, budget := range []string{"unlimited", "10/s burst 10", "10/s", "7/s burst 2", "10/s bucket 20"} {
		for _, pausesOnly := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(func(r *http.Request) (*http.Response, error) {
					return testnet.Answer(r, 429, http.Header{"Retry-After": {"100"}}, nil), nil
				})
				tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget(budget), DisableLearning: pausesOnly})
				mustGet(t, tr, "http://h/")
				var e *throttle.Error
				if _, err := get(t, t.Context(), tr, "http://h/"); !errors.As(err, &e) || e.Reason != throttle.Paused {
					t.Errorf("%s: got %v, want a refusal because of the pause", budget, err)
				}
			})
		}
	}
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
	learnRun(t, throttle.Config{}, limiter, func(t *testing.T, rt *throttle.Transport, s *server) {
		for range 5 {
			one(t, rt, "http://h/v1")
		}
		start := time.Now()
		r, _ := http.NewRequest("GET", "http://h/v1", nil)
		_, err := rt.RoundTrip(r)
		var e *throttle.Error
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
	learnRun(t, throttle.Config{MaxWait: 10 * time.Minute}, func(_ *http.Request, now time.Time) *http.Response {
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
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		failed := swarm(rt, 100, "http://h/v1")
		t.Logf("%d refused", s.refused)
		if failed > 0 || s.good != 100 || s.refused > 100 {
			t.Errorf("%d answers, %d errors, %d refusals, want 100, 0, at most one per answer", s.good, failed, s.refused)
		}
	})
}

func TestDisableLearningKeepsPauses(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{DisableLearning: true}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n == 3 {
			return reply(429, "Retry-After", "5")
		}
		return reply(200, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(now, time.Minute))
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
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

// Resume ends what the server asked for, for the host and its partitions, and
// lets those go that wait.
func TestResumeEndsTheServersPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := true
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			if refuse {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"60"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{Partition: func(r *http.Request) string { return strings.Trim(r.URL.Path, "/") }})
		for _, path := range []string{"", "a"} {
			mustGet(t, tr, "http://h/"+path)
		}
		refuse = false
		start := time.Now()
		done := make(chan time.Duration, 2)
		for _, path := range []string{"", "a"} {
			go func() {
				mustGet(t, tr, "http://h/"+path)
				done <- time.Since(start)
			}()
		}
		time.Sleep(5 * sec)
		tr.Resume("h")
		for range 2 {
			if d := <-done; d != 5*sec {
				t.Errorf("one went after %v, want at once after 5s", d)
			}
		}
	})
}

// A pause of the kinds beyond those told apart is shown and ended as others are.
func TestResumeEndsThePauseOfOtherKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := false
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if refuse {
				return testnet.Answer(r, 429, http.Header{"Ratelimit": {`"search";r=0;t=60`}, "Ratelimit-Policy": {`"search";q=9;w=60`}, "Retry-After": {"60"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{})
		for i := range maxKinds {
			mustGet(t, tr, "http://h/"+strconv.Itoa(i))
		}
		refuse = true
		mustGet(t, tr, "http://h/one-more")
		refuse = false
		mustGet(t, tr, "http://h/1")
		if n := len(tr.Stats().Hosts[0].Learned); n != 3 {
			t.Errorf("%d limits are shown, want the pause, the quota and what was found: %+v", n, tr.Stats().Hosts[0].Learned)
		}
		time.Sleep(sec)
		tr.Resume("h")
		for _, k := range tr.Stats().Hosts[0].Learned {
			if k.Kind == throttle.LearnedPause {
				t.Errorf("paused still: %v", k.Why)
			}
		}
	})
}
