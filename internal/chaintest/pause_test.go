package chaintest

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestRequestsSurviveAPause: nobody is lost in a pause by hand, however it ends.
func TestRequestsSurviveAPause(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var served atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				served.Add(1)
				return stub(r)
			}), weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("100/s")}}))(t)
			start := time.Now()
			rt.Throttle().Pause("h", start.Add(30*time.Second))
			for range 200 {
				go func() {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				}()
			}
			time.Sleep(10 * time.Second)
			if served.Load() != 0 {
				t.Errorf("%d requests were sent while paused, want none", served.Load())
			}
			if resumed {
				rt.Throttle().Pause("h", start.Add(70*time.Second))
				rt.Throttle().Resume("h")
			} else {
				time.Sleep(20 * time.Second)
			}
			time.Sleep(10 * time.Second)
			if served.Load() != 200 {
				t.Errorf("%d requests were served after the pause, want all 200", served.Load())
			}
		})
	}
}

// TestNoHerdAfterAPause: after a pause by hand the flow resumes at the shaped
// rate, that of a partition too.
func TestNoHerdAfterAPause(t *testing.T) {
	for _, part := range []string{"", "part"} {
		synctest.Test(t, func(t *testing.T) {
			var served atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				served.Add(1)
				return stub(r)
			}), weir.Config{Throttle: throttle.Config{
				Default:   throttle.MustParseBudget("20/s burst 10"),
				Partition: func(*http.Request) string { return part },
			}}))(t)
			send := func() {
				if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
					resp.Body.Close()
				} else {
					t.Error(err)
				}
			}
			send()
			rt.Throttle().Pause("h", time.Now().Add(20*time.Second))
			for range 50 {
				go send()
			}
			time.Sleep(20*time.Second + 10*time.Millisecond)
			if n := served.Load(); n != 2 {
				t.Errorf("partition %q: %d requests were sent at once when the pause was over, want 1", part, n-1)
			}
			time.Sleep(10 * time.Second)
		})
	}
}

// TestPauseOfLimiterEnds: a pause that is ended, or made shorter, holds nobody
// any longer; that of a Limiter's key too.
func TestPauseOfLimiterEnds(t *testing.T) {
	for _, budget := range []string{"10/s", "60/m bucket 20", "100/m burst 1"} {
		synctest.Test(t, func(t *testing.T) {
			l := must(throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget(budget)}))(t)
			for _, end := range []time.Duration{-time.Second, 5 * time.Second} {
				l.Pause("k", time.Now().Add(time.Hour))
				if d := l.Try("k", nil); d.Allowed || d.RetryAfter < 59*time.Minute {
					t.Errorf("%s: %+v while paused for an hour, want not allowed, and RetryAfter to name that hour", budget, d)
				}
				l.Pause("k", time.Now().Add(end))
				time.Sleep(max(0, end) + 2*time.Second)
				if d := l.Try("k", nil); !d.Allowed {
					t.Errorf("%s: %+v after the pause has ended, want allowed", budget, d)
				}
			}
		})
	}
}

// TestResumeEndsWhatTheServerAskedFor: an operator's word goes before the
// server's.
func TestResumeEndsWhatTheServerAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, n := time.Now(), 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		time.AfterFunc(5*time.Second, func() { rt.Throttle().Resume("h") })
		resp, err := rt.RoundTrip(get(t, "http://h/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(start); took < 5*time.Second || took > 8*time.Second {
			t.Errorf("went on after %v, the host was resumed after 5s", took)
		}
	})
}
