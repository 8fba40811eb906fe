package chaintest

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// retryOnce is a CheckRetry that retries the first attempt and ends the
// second with its error.
func retryOnce(n *int) func(context.Context, *http.Response, error) (bool, error) {
	return func(_ context.Context, _ *http.Response, err error) (bool, error) { return *n < 2, err }
}

// userFunctions are Configs each of which has one function that fails.
func userFunctions(fail func()) map[string]weir.Config {
	word := func(*http.Request) string { fail(); return "" }
	always := throttle.Config{Default: throttle.MustParseBudget("1/s burst 1")}
	with := func(set func(*throttle.Config)) weir.Config {
		c := always
		set(&c)
		return weir.Config{Throttle: c}
	}
	return map[string]weir.Config{
		"Partition":      with(func(c *throttle.Config) { c.Partition = word }),
		"Lane":           with(func(c *throttle.Config) { c.Lane = word }),
		"Cost":           with(func(c *throttle.Config) { c.Cost = func(*http.Request) throttle.Cost { fail(); return nil } }),
		"OnWait":         with(func(c *throttle.Config) { c.OnWait = func(throttle.Wait) { fail() } }),
		"OnWait over":    with(func(c *throttle.Config) { c.OnWait = func(w throttle.Wait) { over(w, fail) } }),
		"OnLearn":        with(func(c *throttle.Config) { c.OnLearn = func(throttle.Learned) { fail() } }),
		"OnAttempt":      {Retry: retry.Config{OnAttempt: func(retry.Attempt) { fail() }}},
		"IdempotencyKey": {Retry: retry.Config{IdempotencyKey: word}},
		"Backoff":        {Retry: retry.Config{Backoff: func() backoff.BackOff { fail(); return &backoff.ZeroBackOff{} }}},
		"Delay": {Retry: retry.Config{Delay: func(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
			fail()
			return 0
		}}},
		"Check": {Retry: retry.Config{Check: func(context.Context, *http.Response, error) (bool, error) {
			fail()
			return false, nil
		}}},
		"Shard":         {Breaker: breaker.Config{Shard: word}},
		"Classify":      {Breaker: breaker.Config{Classify: func(*http.Response, error) breaker.Outcome { fail(); return breaker.Default }}},
		"OnStateChange": {Breaker: breaker.Config{OnStateChange: func(breaker.Change) { fail() }, Consecutive: 1, OpenFor: time.Second}},
		"Fallback": {Breaker: breaker.Config{Consecutive: 1, OpenFor: time.Second, Fallback: func(*http.Request, error) (*http.Response, error) {
			fail()
			return nil, nil
		}}},
	}
}

func over(w throttle.Wait, f func()) {
	if w.Over {
		f()
	}
}

// TestFunctionsThatPanicLeaveNothingBehind: a user's function that panics or ends its goroutine
// leaves no body open, no place taken and no lock held.
func TestFunctionsThatPanicLeaveNothingBehind(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("user") }, "Goexit": runtime.Goexit} {
		var failing, failed atomic.Bool
		for name, c := range userFunctions(func() {
			if failing.Load() {
				failed.Store(true)
				end()
			}
		}) {
			t.Run(name+" "+how, func(t *testing.T) {
				failing.Store(true)
				failed.Store(false)
				synctest.Test(t, func(t *testing.T) { userFails(t, c, &failing) })
				if !failed.Load() {
					t.Error("the function was never called")
				}
			})
		}
	}
}

// TestHooksMaySendRequests: hooks and other functions of the program may send requests through
// the Transport that called them, also with the context that they were given.
func TestHooksMaySendRequests(t *testing.T) {
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
			t.Errorf("hooks made %d calls, want 50 or more", nested.Load())
		}
	})
}

func userFails(t *testing.T, c weir.Config, failing *atomic.Bool) {
	var mu sync.Mutex
	var bodies []*testnet.Body
	var calls atomic.Int64
	body := func(text string) *testnet.Body {
		mu.Lock()
		defer mu.Unlock()
		b := testnet.NewBody(text)
		bodies = append(bodies, b)
		return b
	}
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		n := calls.Add(1)
		h := http.Header{"Ratelimit-Policy": {`"a";q=100;w=60`}, "Ratelimit": {`"a";r=50;t=30`}}
		switch {
		case n%6 == 1 && failing.Load():
			r.Body.Close()
			return nil, io.ErrUnexpectedEOF
		case n%3 == 1 && failing.Load():
			return testnet.Answer(r, 500, nil, body("answer")), nil
		}
		return testnet.Answer(r, 200, h, body("answer")), nil
	}), c))(t)
	call := func() {
		defer func() { recover() }()
		r := must(http.NewRequest("POST", "http://h/", body("sent")))(t)
		r.GetBody = func() (io.ReadCloser, error) { return body("sent"), nil }
		r.Header.Set("X-Idempotency-Key", "k")
		if c.Retry.IdempotencyKey != nil {
			r.Header.Del("X-Idempotency-Key")
		}
		resp, err := rt.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
	}
	for range 12 {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(call)
		}
		wg.Wait()
	}
	failing.Store(false)
	time.Sleep(5 * time.Minute)
	for i, b := range bodies {
		if b.Closes() == 0 {
			t.Errorf("body %d of %d was left open", i, len(bodies))
			break
		}
	}
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	resp.Body.Close()
	for _, h := range rt.Stats().Throttle.Hosts {
		if h.InFlight != 0 || h.Queue != 0 {
			t.Errorf("%d requests in flight and %d in the queue after all have ended", h.InFlight, h.Queue)
		}
	}
}

// However long the program's own functions take, an attempt's time counts from
// when it was handed on: a timeout is not shorter, a call not slower.
func TestSlowFunctionsAreNotSlowCalls(t *testing.T) {
	slow := func() { time.Sleep(7 * time.Second) }
	word := func(*http.Request) string { slow(); return "x" }
	for name, c := range map[string]weir.Config{
		"Partition":      {Throttle: throttle.Config{Partition: word}},
		"Lane":           {Throttle: throttle.Config{Lane: word, Default: throttle.MustParseBudget("1/m burst 1")}},
		"Cost":           {Throttle: throttle.Config{Cost: func(*http.Request) throttle.Cost { slow(); return nil }}},
		"OnWait":         {Throttle: throttle.Config{OnWait: func(throttle.Wait) { slow() }, Default: throttle.MustParseBudget("1/m burst 1")}},
		"Shard":          {Breaker: breaker.Config{Shard: word}},
		"IdempotencyKey": {Retry: retry.Config{IdempotencyKey: word}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { slowFunctions(t, c) })
		})
	}
}

func slowFunctions(t *testing.T, c weir.Config) {
	const works = 5 * time.Second
	c.Retry.AttemptTimeout = works + time.Second
	c.Retry.OnAttempt = func(a retry.Attempt) {
		if a.Took != works && c.Breaker.Shard == nil { // which is asked after the answer, too
			t.Errorf("an attempt took %v, want %v", a.Took, works)
		}
	}
	c.Breaker.SlowCall, c.Breaker.SlowRate, c.Breaker.MinCalls, c.Breaker.FailureRate = works+time.Second, 0.1, 2, 0.9
	status := http.StatusInternalServerError // the first, so that the host has a circuit
	w, err := weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(works)
		defer func() { status = http.StatusOK }()
		return testnet.Answer(r, status, nil, testnet.NewBody("x")), nil
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		time.Sleep(time.Second)
		r, _ := http.NewRequest("POST", "http://a.test/", nil)
		resp, err := w.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if s := w.Circuits().State("a.test"); s != breaker.Closed {
		t.Errorf("the circuit is %v, want closed: only the program's own functions were slow", s)
	}
}
