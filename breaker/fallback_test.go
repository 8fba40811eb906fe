package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// While the circuit is not closed the Fallback answers for probes that fail as
// well as for refusals, whether they brought an error or a 5xx, whose body is
// then closed.
func TestFallbackAnswersForProbes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var why error
		cs, h, rt := rig(t, breaker.Config{Fallback: func(r *http.Request, err error) (*http.Response, error) {
			why = err
			return testnet.Answer(r, 203, nil, nil), nil
		}})
		h.set(status(500))
		for i := range 19 {
			if code, err := get(rt, site); code != 500 {
				t.Fatalf("failure %d of a closed circuit: %d, %v", i, code, err)
			}
		}
		body := testnet.NewBody("down")
		h.set(func(r *http.Request) (*http.Response, error) {
			resp := testnet.Answer(r, 503, nil, nil)
			resp.Body = body
			return resp, nil
		})
		var e *breaker.StatusError
		if code, _ := get(rt, site); code != 203 || !errors.As(why, &e) || e.StatusCode != 503 || e.Host != "a.example" || body.Closes() != 1 {
			t.Errorf("the failure that opens it: %d for %v, closed %d times", code, why, body.Closes())
		}
		h.set(down)
		due(t, cs)
		if code, err := get(rt, site); code != 203 || why != errReset {
			t.Errorf("a probe that fails: %d, %v for %v", code, err, why)
		}
		want(t, cs, breaker.Open, "a probe failed")
		if got := cs.Stats().Circuits[0].Fallbacks; got != 2 {
			t.Errorf("%d answers counted, want 2", got)
		}
		due(t, cs)
		h.set(status(404))
		if code, _ := get(rt, site); code != 404 {
			t.Errorf("a probe that is answered well: %d", code)
		}
	})
}

// FallbackOn names what else the Fallback answers for, and that is counted
// too, also for a host about which nothing bad is known.
func TestFallbackOnNamesWhatElseIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cached := func(r *http.Request, err error) (*http.Response, error) {
			return testnet.Answer(r, 203, nil, nil), nil
		}
		for name, x := range map[string]struct {
			on   func(*http.Response, error) bool
			does answer
			want int
		}{
			"OnFailure, error":       {breaker.OnFailure, down, 203},
			"OnFailure, 500":         {breaker.OnFailure, status(500), 203},
			"OnFailure, 404":         {breaker.OnFailure, status(404), 404},
			"404 of the user's":      {func(r *http.Response, err error) bool { return r != nil && r.StatusCode == 404 }, status(404), 203},
			"none":                   {nil, status(500), 500},
			"another of the user's":  {func(*http.Response, error) bool { return false }, status(500), 500},
			"what is well is served": {breaker.OnFailure, status(200), 200},
		} {
			cs, h, rt := rig(t, breaker.Config{Fallback: cached, FallbackOn: x.on})
			h.set(x.does)
			if code, err := get(rt, site); code != x.want {
				t.Errorf("%s: %d, %v", name, code, err)
			}
			n := uint64(0)
			for _, c := range cs.Stats().Circuits {
				n += c.Fallbacks
			}
			if n != 0 != (x.want == 203) {
				t.Errorf("%s: %d counted", name, n)
			}
		}
		_, h, rt := rig(t, breaker.Config{FallbackOn: breaker.OnFailure, Fallback: func(*http.Request, error) (*http.Response, error) {
			return nil, errors.New("nothing kept")
		}})
		h.set(status(500))
		if code, err := get(rt, site); code != 500 {
			t.Errorf("a Fallback that fails: %d, %v, want the host's answer", code, err)
		}
		if _, err := breaker.NewCircuits(breaker.Config{FallbackOn: breaker.OnFailure}); err == nil {
			t.Error("FallbackOn without Fallback is accepted")
		}
	})
}

// A Fallback or FallbackOn that panics or ends its goroutine leaves no answer open.
func TestFallbackThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]breaker.Config{
			"Fallback panics": {FallbackOn: breaker.OnFailure, Fallback: func(*http.Request, error) (*http.Response, error) { panic("mine") }},
			"Fallback ends": {FallbackOn: breaker.OnFailure, Fallback: func(*http.Request, error) (*http.Response, error) {
				runtime.Goexit()
				return nil, nil
			}},
			"FallbackOn panics": {
				FallbackOn: func(*http.Response, error) bool { panic("mine") },
				Fallback:   func(*http.Request, error) (*http.Response, error) { return nil, nil },
			},
		} {
			_, h, rt := rig(t, c)
			body := testnet.NewBody("down")
			h.set(func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 500, nil, body), nil })
			done := make(chan bool)
			go func() {
				defer close(done)
				defer func() { recover() }()
				get(rt, site)
			}()
			<-done
			if body.Closes() != 1 {
				t.Errorf("%s: the answer was closed %d times", name, body.Closes())
			}
		}
	})
}

// The error of a fallback that failed comes out.
func TestErrorOfFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("no copy either")
		cs := circuits(t, breaker.Config{Fallback: func(*http.Request, error) (*http.Response, error) { return nil, gone }})
		cs.Force("a.example", breaker.Open)
		if _, err := get(cs.Door(&host{answer: down}), site); !errors.Is(err, gone) {
			t.Errorf("refused: %v, want the fallback's error", err)
		}
	})
}

// One whose deadline has passed is answered, one who has cancelled is not.
func TestFallbackAfterTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, h, rt := rig(t, breaker.Config{FallbackOn: breaker.OnFailure, Fallback: func(r *http.Request, err error) (*http.Response, error) {
			return testnet.Answer(r, 203, nil, nil), nil
		}})
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx)); err != nil || resp.StatusCode != 203 {
			t.Errorf("past the deadline: %v, %v", resp, err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}
