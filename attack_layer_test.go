package weir_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestHooksCallBack: functions of the user's may send requests through the
// Transport that called them, also with the context they were given.
func TestHooksCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *weir.Transport
		var nested atomic.Int64
		again := func(ctx context.Context) {
			if ctx.Value(valueKey{}) != nil {
				return
			}
			nested.Add(1)
			ctx = context.WithValue(ctx, valueKey{}, "nested")
			if resp, err := rt.RoundTrip(get(t, "http://h/nested").WithContext(ctx)); err == nil {
				resp.Body.Close()
			} else {
				t.Errorf("nested: %v", err)
			}
		}
		ask := func(r *http.Request) string { again(r.Context()); return "" }
		n := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n%5 == 1 {
				return testnet.Answer(r, 500, nil, nil), nil
			}
			return testnet.Answer(r, 200, http.Header{"Ratelimit-Policy": {`"a";q=100;w=60`}, "Ratelimit": {`"a";r=90;t=30`}}, nil), nil
		})
		rt = must(weir.New(base, weir.Config{
			Throttle: throttle.Config{
				Default:   throttle.MustParseBudget("50/s burst 2"),
				Partition: ask, Lane: ask, Cost: func(r *http.Request) throttle.Cost { again(r.Context()); return nil },
				OnWait: func(w throttle.Wait) { again(w.Ctx) }, OnLearn: func(l throttle.Learned) { again(l.Ctx) },
			},
			Retry: retry.Config{
				OnAttempt:      func(a retry.Attempt) { again(a.Ctx) },
				IdempotencyKey: ask,
				Check: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
					again(ctx)
					return resp == nil || resp.StatusCode >= 500, nil
				},
			},
			Breaker: breaker.Config{
				Shard: ask,
				Classify: func(resp *http.Response, _ error) breaker.Outcome {
					again(context.WithoutCancel(resp.Request.Context()))
					return breaker.Default
				},
				OnStateChange: func(c breaker.Change) { again(c.Ctx) },
			},
		}))(t)
		for range 8 {
			r := must(http.NewRequest("POST", "http://h/", strings.NewReader("x")))(t)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if nested.Load() < 50 {
			t.Errorf("only %d nested calls", nested.Load())
		}
	})
}

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
				t.Errorf("%d were sent while paused", served.Load())
			}
			if resumed {
				rt.Throttle().Pause("h", start.Add(70*time.Second))
				rt.Throttle().Resume("h")
			} else {
				time.Sleep(20 * time.Second)
			}
			time.Sleep(10 * time.Second)
			if served.Load() != 200 {
				t.Errorf("%d of 200 were served", served.Load())
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
				t.Errorf("partition %q: %d at once when the pause was over", part, n-1)
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
					t.Errorf("%s: %+v while paused", budget, d)
				}
				l.Pause("k", time.Now().Add(end))
				time.Sleep(max(0, end) + 2*time.Second)
				if d := l.Try("k", nil); !d.Allowed {
					t.Errorf("%s: %+v after the pause has ended", budget, d)
				}
			}
		})
	}
}

// TestSecretsStayIn: no error's text has what a URL or header holds in secret.
func TestSecretsStayIn(t *testing.T) {
	const secret = "hunter2"
	failures := map[string]testnet.Func{
		"reset": broken(),
		"url": func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: io.ErrUnexpectedEOF}
		},
		"joined": func(r *http.Request) (*http.Response, error) {
			return nil, errors.Join(io.ErrUnexpectedEOF, &url.Error{Op: "Get", URL: r.URL.String(), Err: io.EOF})
		},
		"429": func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"9999"}}, nil), nil
		},
		"hang": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
	}
	for name, base := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(base, weir.Config{Throttle: throttle.Config{
					Default:   throttle.MustParseBudget("60/s, 90/m"),
					Partition: func(*http.Request) string { return secret },
					Lane:      func(*http.Request) string { return secret },
				}, Breaker: breaker.Config{Shard: func(*http.Request) string { return secret }}}))(t)
				for range 30 {
					r := get(t, "http://me:"+secret+"@h/p?key="+secret+"#"+secret)
					r.Header.Set("Authorization", secret)
					resp, err := rt.RoundTrip(r)
					if err == nil {
						resp.Body.Close()
					} else if strings.Contains(err.Error(), secret) {
						t.Fatalf("%v", err)
					}
				}
			})
		})
	}
}
