package chaintest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// hedged is the Config of those tests, and layers that hedge.
func hedged() retry.Config { return retry.Config{Hedge: retry.Hedge{After: time.Second}} }

func hedging(t testing.TB, base http.RoundTripper, c throttle.Config) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{
		"chain": must(weir.New(base, weir.Config{Retry: hedged(), Throttle: c}))(t),
		"retry": must(retry.New(base, hedged()))(t),
	}
}

// TestAPanicBelowAHedgeIsTheCallers: if either attempt panics, the panic appears in the
// caller's goroutine, and nothing is left behind.
func TestAPanicBelowAHedgeIsTheCallers(t *testing.T) {
	for _, which := range []int64{1, 2} {
		for _, alone := range []bool{false, true} { // whether the other has not been sent, or is still under way
			for _, end := range []func(){func() { panic("base") }, runtime.Goexit} {
				synctest.Test(t, func(t *testing.T) { hedgePanics(t, which, alone, end) })
			}
		}
	}
}

func hedgePanics(t *testing.T, which int64, alone bool, end func()) {
	var calls atomic.Int64
	body := testnet.NewBody("late")
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n := calls.Add(1); n == which {
			if !alone {
				time.Sleep(2 * time.Second)
			}
			end()
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(4 * time.Second):
			return testnet.Answer(r, 200, nil, body), nil
		}
	})
	for name, rt := range hedging(t, base, throttle.Config{}) {
		calls.Store(0)
		done := make(chan any)
		go func() {
			returned := false
			defer func() {
				p := recover()
				if p == nil && returned {
					p = "returned"
				}
				done <- p
			}()
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			if err == nil {
				resp.Body.Close()
			}
			returned = true
		}()
		got := <-done
		n := calls.Load()
		time.Sleep(time.Minute)
		if calls.Load() != n {
			t.Errorf("%s: a hedge was sent after the request had ended (%v)", name, got)
		}
		if which == 2 && got == nil {
			t.Errorf("%s: the end of the hedge's goroutine ended the caller's", name)
		}
	}
}

// TestAWaitThatEitherAttemptIsToldHolds: a wait that the server asks for in the answer to either
// attempt is a floor for the next one.
func TestAWaitThatEitherAttemptIsToldHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		var asked, again atomic.Pointer[time.Time]
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			now := time.Now()
			switch calls.Add(1) {
			case 1:
				time.Sleep(3 * time.Second)
				return testnet.Answer(r, 500, nil, nil), nil
			case 2:
				asked.Store(&now)
				return testnet.Answer(r, 503, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			again.Store(&now)
			return stub(r)
		})
		for name, rt := range hedging(t, base, throttle.Config{}) {
			calls.Store(0)
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			if err != nil {
				t.Fatal(name, err)
			}
			resp.Body.Close()
			if d := again.Load().Sub(*asked.Load()); d < 30*time.Second {
				t.Errorf("%s: sent again after %v, the server asked for 30s", name, d)
			}
		}
	})
}

// TestAnAnswerToAHedgeIsReturned: an answer to the hedge is returned rather than the error
// of the first attempt, whatever its status.
func TestAnAnswerToAHedgeIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls.Add(1)%2 == 0 {
				return testnet.Answer(r, 501, nil, testnet.NewBody("why")), nil
			}
			time.Sleep(3 * time.Second)
			return nil, io.ErrUnexpectedEOF
		})
		for name, rt := range hedging(t, base, throttle.Config{}) {
			calls.Store(0)
			ctx := retry.With(t.Context(), retry.Override{MaxAttempts: 2})
			resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
			if err != nil {
				t.Errorf("%s: %v; the server answered 501", name, err)
				continue
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "why" || err != nil {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			resp.Body.Close()
		}
	})
}

// TestHedgesKeepToTheBudget: a hedge spends budget as any attempt does. If there is no
// room for it now, it is not sent.
func TestHedgesKeepToTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []time.Time
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			log = append(log, time.Now())
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return stub(r)
		})
		c := throttle.Config{Default: throttle.MustParseBudget("3/m burst 3")}
		rt := hedging(t, base, c)["chain"]
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			cancel()
		}
		for i := range log[3:] {
			if d := log[i+3].Sub(log[i]); d < time.Minute {
				t.Errorf("four attempts within %v, want at most three a minute: %v", d, log)
			}
		}
		if len(log) < 5 {
			t.Errorf("%d attempts, want 5 or more: no hedge was sent", len(log))
		}
	})
}

// TestACallerWhoLeavesEndsBothAttempts: a caller who leaves gets its own error, and both
// attempts end.
func TestACallerWhoLeavesEndsBothAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for at := range 6 {
			for name, rt := range hedging(t, base, throttle.Config{}) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*500*time.Millisecond)
				_, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
				cancel()
			}
		}
	})
}

// A hedge does not win with an answer that was throttled.
func TestThrottledHedgeDoesNotWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var mu sync.Mutex
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			n++
			first := n == 1
			mu.Unlock()
			if !first {
				return testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(`{"errors":[{"extensions":{"code":"THROTTLED"}}]}`)), nil
			}
			select {
			case <-time.After(2 * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(`{"data":1}`)), nil
		}), weir.Config{Retry: retry.Config{Hedge: retry.Hedge{After: time.Second}}}))(t)
		resp, err := rt.RoundTrip(get(t, "https://api.example/graphql?query={a}"))
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(resp.Body); string(text) != `{"data":1}` || n != 2 {
			t.Errorf("%s after %d attempts, want the first one's answer", text, n)
		}
		resp.Body.Close()
	})
}
