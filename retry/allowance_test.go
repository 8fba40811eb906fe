package retry

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// A record may be forgotten when its allowance is full, and not before.
func TestAFullAllowanceMayBeForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{past: new(past)}
		if !h.Idle(time.Now()) {
			t.Error("a fresh record is kept")
		}
		for range 3 {
			h.allowance.take(500, time.Now())
		}
		time.Sleep(13900 * time.Millisecond)
		if h.Idle(time.Now()) {
			t.Error("42 tokens are not back after 13.9s")
		}
		time.Sleep(100 * time.Millisecond)
		if !h.Idle(time.Now()) {
			t.Error("42 tokens are back after 14s")
		}
	})
}

// The allowance never gives more than it holds and what time brings, whatever
// the order of takes and gives, and a clock that steps back brings nothing.
func TestAllowanceGivesNoMoreThanItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a allowance
		now := time.Now()
		taken := 0
		for a.take(100, now) {
			taken++
		}
		if taken != 7 {
			t.Errorf("took %d out of 100 tokens, want 7", taken)
		}
		if a.take(100, now.Add(-time.Hour)) || a.left(100, now.Add(-time.Hour)) != 2 {
			t.Error("a step back brought tokens")
		}
		if a.take(100, now.Add(3999*time.Millisecond)) || !a.take(100, now.Add(4*time.Second)) {
			t.Error("12 more tokens come in 4s")
		}
		for range 1000 {
			a.give(cost, now)
		}
		if a.left(100, now) != 100 || a.short.Load() {
			t.Errorf("%v of 100 left", a.left(100, now))
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		taken = 0
		for range 64 {
			wg.Go(func() {
				if a.take(100, now) {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			})
		}
		if wg.Wait(); taken != 7 {
			t.Errorf("64 goroutines took %d, want 7", taken)
		}
	})
}

// What fills the allowance again: a retry that succeeds gives its own cost
// back and that of eight that failed, a request that succeeds at the first try
// earns one.
func TestAllowanceIsEarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make([]step, 3*5, 20)
		for i := range steps {
			steps[i].status = 503
		}
		s := play(append(steps, step{status: 503}, step{status: 200})...)
		rt := newTransport(t, s, Config{Backoff: fixed(0)})
		for i, want := range []float64{500 - 2*cost, 500 - 4*cost, 500 - 6*cost, 500 - 8*cost, 500 - 10*cost, 500 - 2*cost, 500 - 2*cost + earn, 500 - 2*cost + 2*earn} {
			rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if got := hostIn(rt.Stats(), "a.example").Allowance; got != want {
				t.Errorf("after request %d: %v, want %v", i+1, got, want)
			}
		}
	})
}

// An answer that Check or the server wants another for is no success: nothing
// comes back for it, or a host that answers so would be asked MaxAttempts times
// for ever.
func TestUnwantedAnswersEarnNothing(t *testing.T) {
	missing := func(_ context.Context, resp *http.Response, err error) (bool, error) {
		return err != nil || resp.StatusCode == 404, nil
	}
	for name, tt := range map[string]struct {
		c     Config
		retry string
	}{
		"Check":      {c: Config{Check: missing}},
		"the server": {retry: "true"},
		"hedged":     {c: Config{Check: missing, Hedge: Hedge{After: time.Millisecond}}},
	} {
		bubble(t, name, func(t *testing.T) {
			var n atomic.Int64
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				n.Add(1)
				if tr := trip.From(r.Context()); tr.Number == 1 && !tr.Hedge {
					time.Sleep(2 * time.Millisecond)
				}
				return testnet.Answer(r, 404, http.Header{"X-Should-Retry": {tt.retry}}, nil), r.Context().Err()
			})
			tt.c.Backoff = fixed(0)
			rt := newTransport(t, base, tt.c)
			for range 100 {
				if resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err != nil || resp.StatusCode != 404 {
					t.Fatal(resp, err)
				}
			}
			if got, want := n.Load(), int64(100+defaultTokens/cost); got != want {
				t.Errorf("100 requests made %d attempts, want %d", got, want)
			}
		})
	}
}

// An attempt that was not made, because its caller left during the delay or in a
// queue below, is none, and costs nothing.
func TestLeaversMakeNoAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		delay  time.Duration
		queued int32 // attempt
		want   int64 // attempts
	}{
		"delay":            {time.Second, 0, 1},
		"queue":            {0, 2, 1},
		"first in a queue": {0, 1, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			s := play(step{status: 500})
			queue := &fakeLayer{base: Wire(s, Config{}), layer: trip.Throttle, before: func(r *http.Request, tr *trip.Trip) error {
				if tr.Number != tt.queued {
					return nil
				}
				<-r.Context().Done()
				return r.Context().Err()
			}}
			rt := newTransport(t, queue, Config{Backoff: fixed(tt.delay)})
			ctx, cancel := context.WithCancel(background())
			time.AfterFunc(time.Millisecond, cancel)
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			var e *Error
			if errors.As(err, &e) && int64(e.Attempts) != tt.want || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			st := rt.Stats()
			if st.Attempts != tt.want || st.Requests != tt.want || st.Retries != nil || hostIn(st, "a.example").Allowance != defaultTokens {
				t.Errorf("%+v, want %d attempts, %d tokens", st, tt.want, defaultTokens)
			}
		})
	}
}

// A failure that is not repeated earns nothing.
func TestFailuresEarnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		rt := newTransport(t, s, Config{MaxAttempts: 2, Backoff: fixed(0)})
		left := func() float64 { return hostIn(rt.Stats(), "a.example").Allowance }
		get(t, rt, "GET")
		spent := left()
		for _, st := range []step{{status: 500}, {status: 501}, {err: errReset}} {
			s.steps = []step{st}
			get(t, rt, "POST")
			if got := left(); got != spent {
				t.Errorf("%+v: %v tokens are left, want %v", st, got, spent)
			}
		}
		s.steps = []step{{status: 404}}
		if get(t, rt, "POST"); left() != spent+earn {
			t.Errorf("after an answer %v tokens are left, want %v", left(), spent+earn)
		}
	})
}

// What was not paid is not paid back to an allowance that others have spent.
func TestFreeHedgesPayNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if !trip.From(r.Context()).Hedge {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), Config{Allowance: Allowance{Disable: true}, Hedge: Hedge{After: time.Millisecond}})
		for i := range 2 {
			if resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			e := rt.link.Hosts.Find("a.example")
			h := e.Value.Occupant(hosts.Retry).(*host)
			if want := float64(i * cost); h.allowance.spent < want {
				t.Errorf("%v tokens are missing, want %v", h.allowance.spent, want)
			}
			h.allowance.take(defaultTokens, time.Now())
			e.Release()
		}
	})
}
