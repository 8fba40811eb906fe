package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

func TestAYearIsNotWaitedFor(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{MaxWait: time.Hour}, func(_ *http.Request, now time.Time) *http.Response {
		if n++; n <= 3 {
			return reply(429, "Retry-After", "31536000", "X-RateLimit-Remaining", "0", "X-RateLimit-Limit", "0", "X-RateLimit-Reset", reset(now, 365*24*time.Hour))
		}
		return reply(200)
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		one(t, rt, "http://h/v1")
		why := restrictionsOf(rt)
		if !strings.Contains(why, "Retry-After") || !strings.Contains(why, "shortened") {
			t.Errorf("restrictions %q, want the header and that it is shortened", why)
		}
		start := time.Now()
		failed := swarm(rt, 10, "http://h/v1")
		if took := time.Since(start); failed > 0 || s.refused != 3 || took < 14*time.Minute || took > 17*time.Minute {
			t.Errorf("%d errors, %d refusals, %v, want 0, 3 (one request asks each five minutes), 15m", failed, s.refused, took)
		}
	})
}

// Also of a host that is well known no more than MaxPause is believed: then one
// request asks, whatever the refusal made of its limit.
func TestAYearIsNotWaitedForAtAKnownHost(t *testing.T) {
	for _, good := range []int{7, 8, 100} {
		n := 0
		learnRun(t, throttle.Config{MaxWait: time.Hour}, func(*http.Request, time.Time) *http.Response {
			if n++; n == good+1 {
				return reply(429, "Retry-After", "31536000")
			}
			return reply(200)
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			for range good + 1 {
				one(t, rt, "http://h/v1")
			}
			for range 3 {
				if status, took := one(t, rt, "http://h/v1"); status != 200 || took > 5*time.Minute+sec {
					t.Errorf("after %d good answers: %d after %v, want 200 after 5m", good, status, took)
				}
			}
		})
	}
}

// A server that always serves and always lies costs at most MaxPause per
// request, whatever it says.
func TestLiesDoNotLockOut(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(v ...string) string { return v[r.IntN(len(v))] }
		learnRun(t, throttle.Config{MaxPause: 10 * time.Second, MaxWait: time.Hour}, func(_ *http.Request, now time.Time) *http.Response {
			number := func() string { return pick("0", "-1", "1", "7", "1e9", "99999999999999999999", "0.5", "x", "") }
			when := func() string {
				return pick("0", "-5", "1", "3", "31536000", reset(now, -time.Hour), reset(now, time.Second), reset(now, 400*24*time.Hour), "soon")
			}
			return reply(200, "X-RateLimit-Limit", number(), "X-RateLimit-Remaining", number(), "X-RateLimit-Reset", when(),
				"RateLimit", fmt.Sprintf(`"a";r=%s;t=%s`, number(), when()), "RateLimit-Policy", fmt.Sprintf(`"a";q=%s;w=%s`, number(), when()))
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			for i := range 60 {
				if _, took := one(t, rt, "http://h/v1"); took > 11*time.Second {
					t.Fatalf("seed %d: request %d waited %v, want at most MaxPause: %s", seed, i, took, restrictionsOf(rt))
				}
			}
		})
	}
}

// Part of a unit at a time is waited for until it is one, and no cost is waited
// for in vain.
func TestLessThanAUnitIsNoLockout(t *testing.T) {
	for reset, longest := range map[string]time.Duration{"1ms": time.Second, "20s": 5 * time.Minute} {
		n := 0
		c := throttle.Config{MaxWait: time.Hour, Cost: func(*http.Request) throttle.Cost { return throttle.Cost{"tokens": 3} }}
		learnRun(t, c, func(*http.Request, time.Time) *http.Response {
			if n++; n > 1 {
				return reply(200)
			}
			return reply(200, "X-RateLimit-Limit-Tokens", "0.5", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", reset)
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			for i := range 5 {
				if status, took := one(t, rt, "http://h/v1"); status != 200 || took > longest {
					t.Fatalf("reset %s: request %d waited %v: %s", reset, i, took, restrictionsOf(rt))
				}
			}
		})
	}
}

// failing makes calls for a minute to a host that fails the share p of them at random by
// bare 503s, and returns how long it takes until all are answered.
func failing(t *testing.T, p float64, perSecond int, seed uint64) (took time.Duration) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	learnRun(t, throttle.Config{MaxWait: 10 * time.Minute}, func(*http.Request, time.Time) *http.Response {
		if r.Float64() < p {
			return reply(503)
		}
		return reply(200)
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		start := time.Now()
		var wg sync.WaitGroup
		for range 60 * perSecond {
			wg.Go(func() {
				q, _ := http.NewRequest("GET", "http://h/v1", nil)
				if resp, err := rt.RoundTrip(q); err == nil {
					resp.Body.Close()
				}
			})
			time.Sleep(time.Second / time.Duration(perSecond))
		}
		wg.Wait()
		took = time.Since(start)
	})
	return took
}

// A host that fails at random is no limiter: its requests are not paced down
// to nothing, in the mean of hosts that fail as often. A few in a thousand begin with so
// long a run of bad luck that they are taken for one for a minute or two.
func TestAHostThatOftenFailsIsNotTakenForALimiter(t *testing.T) {
	const hosts = 24
	for _, p := range []float64{0.1, 0.3, 0.5, 0.8} {
		sum := time.Duration(0)
		for seed := range uint64(hosts) {
			sum += failing(t, p, 50, seed)
		}
		if took := sum / hosts; took > 90*time.Second {
			t.Errorf("p = %v: 3000 requests at 50/s took %v, want a minute, or half a minute more", p, took)
		}
	}
}

// A host that is called seldom gives few answers to tell chance by. Where a limit would help
// nobody, answers that come as if by chance make no pause long: bad luck costs a hundred
// hosts a thirtieth of their time together, and seldom one of them minutes, which are as much again.
func TestBadLuckIsSeldomLong(t *testing.T) {
	const hosts = 100
	sum, long := time.Duration(0), 0
	for seed := range uint64(hosts) {
		took := failing(t, .8, 10, seed)
		if sum += took; took > 270*time.Second {
			long++
		}
	}
	if t.Logf("%v in the mean, %d long", sum/hosts, long); sum/hosts > 69*time.Second || long > 1 {
		t.Errorf("600 requests at 10/s took %v in the mean, and four minutes and a half at %d of %d hosts; want 69 s, and one", sum/hosts, long, hosts)
	}
}

func TestABare503OfALimiterFindsTheRate(t *testing.T) {
	excess, last := 0.0, time.Time{}
	learnRun(t, throttle.Config{MaxWait: 10 * time.Minute}, func(_ *http.Request, now time.Time) *http.Response {
		if !last.IsZero() {
			excess = max(0, excess-now.Sub(last).Seconds()*10)
		}
		last = now
		if excess > 20 {
			return reply(503)
		}
		excess++
		return reply(200)
	}, func(t *testing.T, rt *throttle.Transport, s *server) {
		start := time.Now()
		left := 200
		for range 40 {
			before := s.good
			once(rt, left, "http://h/v1")
			if left -= s.good - before; left == 0 {
				break
			}
		}
		took := time.Since(start)
		t.Logf("%v, %d refused", took, s.refused)
		if s.good < 200 || s.refused > 120 || took > 30*time.Second {
			t.Errorf("%d answers, %d refusals in %v, want 200, at most 120, at most 30s (18s is ideal)", s.good, s.refused, took)
		}
	})
}

func TestHugeNumbersDoNotOverflow(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{Pace: true, MaxWait: time.Hour}, func(*http.Request, time.Time) *http.Response {
		n++
		resp := reply(200, "RateLimit-Policy", `"a";q=999999999999999;w=1`, "RateLimit", `"a";r=999999999999999;t=1`,
			"X-RateLimit-Limit", "1"+strings.Repeat("0", 300), "X-RateLimit-Remaining", "1"+strings.Repeat("0", 300), "X-RateLimit-Reset", "1")
		if n%3 == 0 {
			resp.StatusCode = 429
			resp.Header.Set("Retry-After", "99999999999999999999999999")
		}
		return resp
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
		for i := range 12 {
			if _, took := one(t, rt, "http://h/v1"); took < 0 || took > 6*time.Minute {
				t.Errorf("request %d waited %v, want at most MaxPause and a little", i, took)
			}
		}
		if words := restrictionsOf(rt); len(words) > 1000 {
			t.Errorf("%d bytes of words: %s", len(words), words)
		}
	})
}

// TestFailedProbesShowNoRate: a circuit that probes a host that fails often
// asks as seldom as it likes. That is not taken for the rate which the host
// allows, as it would be if these were requests like others.
func TestFailedProbesShowNoRate(t *testing.T) {
	for _, probes := range []bool{false, true} {
		n := 0
		learnRun(t, throttle.Config{}, func(r *http.Request, _ time.Time) *http.Response {
			trip.From(r.Context()).Probe = probes
			if n++; n%3 != 0 {
				return reply(503)
			}
			return reply(200)
		}, func(t *testing.T, rt *throttle.Transport, _ *server) {
			paced := false
			for range 60 {
				one(t, rt, "http://h/v1")
				time.Sleep(100 * time.Millisecond)
				paced = paced || strings.Contains(restrictionsOf(rt), "found by its refusals")
			}
			if paced == probes {
				t.Errorf("probes %t: paced %t", probes, paced)
			}
		})
	}
}
