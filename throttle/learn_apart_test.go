package throttle_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// quarters is a fixed window of an API that states its limits.
type quarters struct {
	size, used int
	per        time.Duration
	ends       time.Time
}

// take counts a request and returns what is left; negative: it is refused.
func (w *quarters) take(now time.Time) int {
	if !now.Before(w.ends) {
		w.used, w.ends = 0, now.Add(w.per)
	}
	w.used++
	return w.size - w.used
}

func (w *quarters) say(h http.Header, family string, now time.Time) {
	h.Set(family+"Limit", strconv.Itoa(w.size))
	h.Set(family+"Remaining", strconv.Itoa(max(0, w.size-w.used)))
	h.Set(family+"Reset", reset(now, w.ends.Sub(now)))
}

// endpoints is an API with a limit for each endpoint, and its budgets' patterns.
func endpoints(limits map[string]*quarters) (throttle.Config, func(r *http.Request, now time.Time) *http.Response) {
	c := throttle.Config{MaxWait: time.Hour, Budgets: map[string]throttle.Budget{}}
	for path := range limits {
		c.Budgets["a"+path] = throttle.Budget{}
	}
	return c, func(r *http.Request, now time.Time) *http.Response {
		w, resp := limits[r.URL.Path], reply(200)
		if w.take(now) < 0 {
			resp = reply(429)
		}
		w.say(resp.Header, "X-Rate-Limit-", now)
		return resp
	}
}

// Each endpoint of an API may have a limit of its own, though all have one name
// or none: then they differ in size, and one that is spent does not stop the others.
func TestLimitsOfEndpoints(t *testing.T) {
	for _, name := range []string{"", "default"} {
		c, answer := endpoints(map[string]*quarters{"/2/users": {size: 15, per: 15 * time.Minute}, "/2/search": {size: 300, per: 15 * time.Minute}})
		named := func(r *http.Request, now time.Time) *http.Response {
			resp := answer(r, now)
			resp.Header.Set("X-Rate-Limit-Resource", name)
			return resp
		}
		learnRun(t, c, named, func(t *testing.T, rt *throttle.Transport, s *server) {
			begin := time.Now()
			for range 15 {
				one(t, rt, "http://a/2/users")
				one(t, rt, "http://a/2/search")
			}
			if failed := swarm(rt, 200, "http://a/2/search"); failed > 0 || s.refused > 0 || time.Since(begin) > time.Minute {
				t.Errorf("%q: the roomy endpoint took %v with %d errors, %d refusals, want less than a minute and none", name, time.Since(begin), failed, s.refused)
			}
			if status, waited := one(t, rt, "http://a/2/users"); status != 200 || waited < 14*time.Minute {
				t.Errorf("%q: the spent endpoint answered %d after %v, want 200 in 15 minutes", name, status, waited)
			}
		})
	}
}

// A refusal that tells such a limit to be spent pauses its own endpoint only.
func TestLimitsOfEndpointsPauseTheirOwn(t *testing.T) {
	users := &quarters{size: 15, per: 15 * time.Minute}
	c, answer := endpoints(map[string]*quarters{"/2/users": users, "/2/search": {size: 300, per: 15 * time.Minute}})
	learnRun(t, c, answer, func(t *testing.T, rt *throttle.Transport, s *server) {
		one(t, rt, "http://a/2/users")
		one(t, rt, "http://a/2/search")
		users.used = 15 // somebody else's
		if status, _ := one(t, rt, "http://a/2/users"); status != 429 {
			t.Fatalf("got %d, want 429", status)
		}
		if status, waited := one(t, rt, "http://a/2/search"); status != 200 || waited > time.Second {
			t.Errorf("the other endpoint answered %d after %v, want 200 at once", status, waited)
		}
	})
}

// Two limits in one answer, of a gateway and of what stands behind it, are both
// obeyed, though neither has a name.
func TestTwoUnnamedLimitsInOneAnswer(t *testing.T) {
	hour, short := &quarters{size: 1000, per: time.Hour}, &quarters{size: 10, per: 2 * time.Second}
	answer := func(_ *http.Request, now time.Time) *http.Response {
		resp := reply(200)
		if short.take(now) < 0 || hour.take(now) < 0 {
			resp = reply(429)
		}
		short.say(resp.Header, "RateLimit-", now)
		hour.say(resp.Header, "X-RateLimit-", now)
		return resp
	}
	learnRun(t, throttle.Config{}, answer, func(t *testing.T, rt *throttle.Transport, s *server) {
		begin := time.Now()
		failed := swarm(rt, 100, "http://a/x")
		if took := time.Since(begin); failed > 0 || s.refused > 4 || took > 30*time.Second {
			t.Errorf("%d errors, %d refusals in %v, want none, at most 4 in half a minute", failed, s.refused, took)
		}
	})
}

// Those that wait for what a server stated of one endpoint do not hold up others
// of the host, whose budget all share, however often they are looked at.
func TestASpentEndpointHoldsUpNobody(t *testing.T) {
	c, answer := endpoints(map[string]*quarters{"/search": {size: 30, per: time.Minute}, "/items": {size: 5000, per: time.Hour}})
	c.Budgets = map[string]throttle.Budget{"a": throttle.MustParseBudget("10/s burst 1")}
	learnRun(t, c, answer, func(t *testing.T, rt *throttle.Transport, s *server) {
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() { one(t, rt, "http://a/search") })
		}
		time.Sleep(5 * time.Second) // half of them wait for the next minute
		begin := time.Now()
		for range 6 {
			wg.Go(func() {
				for range 50 {
					one(t, rt, "http://a/items")
				}
				if took := time.Since(begin); took > 33*time.Second {
					t.Errorf("300 at 10 a second took %v", took)
				}
			})
		}
		wg.Wait()
	})
}

func TestTwoCredentialsDoNotPauseEachOther(t *testing.T) {
	n := 0
	learnRun(t, throttle.Config{}, func(r *http.Request, now time.Time) *http.Response {
		if n++; n == 1 {
			return reply(429, "Retry-After", "20")
		}
		return reply(200)
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
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
	learnRun(t, throttle.Config{}, func(r *http.Request, now time.Time) *http.Response {
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
	}, func(t *testing.T, rt *throttle.Transport, _ *server) {
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

func TestOneSlowEndpointDoesNotSlowOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleepy{server: server{trip: 20 * time.Millisecond}}
		s.work = func(r *http.Request) (time.Duration, *http.Response) {
			if strings.HasPrefix(r.URL.Path, "/slow") {
				return time.Hour, nil
			}
			return 10 * time.Millisecond, nil
		}
		rt, err := throttle.New(s, throttle.Config{})
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
