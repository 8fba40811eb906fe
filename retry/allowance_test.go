package retry_test

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
	"github.com/weirhttp/weir/retry"
)

// A record may be forgotten when its allowance is full, and not before.
func TestAFullAllowanceMayBeForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 200}, step{status: 500})
		rt := newTransport(t, s, retry.Config{MaxAttempts: 4, Backoff: fixed(0)})
		idle := func() bool {
			e := rt.Link().Hosts.Find("a.example")
			defer e.Release()
			return e.Value.Occupant(hosts.Retry).Idle(time.Now())
		}
		if get(t, rt, "GET"); !idle() {
			t.Error("a fresh record is kept")
		}
		get(t, rt, "GET") // pays for three retries
		time.Sleep(13900 * time.Millisecond)
		if idle() {
			t.Error("42 tokens are not back after 13.9s")
		}
		time.Sleep(100 * time.Millisecond)
		if !idle() {
			t.Error("42 tokens are back after 14s")
		}
	})
}

// The allowance never gives more than it holds and what time brings, whatever
// the order of takes and gives.
func TestAllowanceGivesNoMoreThanItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		status := 500
		rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			return testnet.Answer(r, status, nil, nil), nil
		}), retry.Config{MaxAttempts: 50, Backoff: fixed(0), Allowance: retry.Allowance{Tokens: 100}})
		retries := func() int64 {
			calls.Store(0)
			get(t, rt, "GET")
			return calls.Load() - 1
		}
		left := func() float64 { return hostIn(rt.Stats(), "a.example").Allowance }
		if n := retries(); n != 7 || left() != 2 {
			t.Errorf("100 tokens paid for %d retries, want 7; %v are left", n, left())
		}
		time.Sleep(3999 * time.Millisecond)
		if n := retries(); n != 0 {
			t.Errorf("%d retries before 12 more tokens came", n)
		}
		time.Sleep(time.Millisecond)
		if n := retries(); n != 1 {
			t.Errorf("%d retries after 4s, in which 12 tokens come, want 1", n)
		}
		status = 200
		for range 1000 {
			get(t, rt, "GET")
		}
		if left() != 100 {
			t.Errorf("%v of 100 left", left())
		}
		status = 500
		calls.Store(0)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { get(t, rt, "GET") })
		}
		if wg.Wait(); calls.Load() != 64+7 {
			t.Errorf("64 requests at once were repeated %d times, want 7", calls.Load()-64)
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
		rt := newTransport(t, s, retry.Config{Backoff: fixed(0)})
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
		c     retry.Config
		retry string
	}{
		"Check":      {c: retry.Config{Check: missing}},
		"the server": {retry: "true"},
		"hedged":     {c: retry.Config{Check: missing, Hedge: retry.Hedge{After: time.Millisecond}}},
	} {
		bubble(t, name, func(t *testing.T) {
			var n atomic.Int64
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
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
			queue := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Throttle, before: func(r *http.Request, tr *trip.Trip) error {
				if tr.Number != tt.queued {
					return nil
				}
				<-r.Context().Done()
				return r.Context().Err()
			}}
			rt := newTransport(t, queue, retry.Config{Backoff: fixed(tt.delay)})
			ctx, cancel := context.WithCancel(background())
			time.AfterFunc(time.Millisecond, cancel)
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			var e *retry.Error
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
		rt := newTransport(t, s, retry.Config{MaxAttempts: 2, Backoff: fixed(0)})
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
		fails := true
		rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if fails {
				return testnet.Answer(r, 500, nil, nil), nil
			}
			if !trip.From(r.Context()).Hedge {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), retry.Config{MaxAttempts: 4, Backoff: fixed(0)})
		get(t, rt, "GET") // pays for three retries
		fails = false
		if err := rt.SetHost("a.example", retry.Config{Allowance: retry.Allowance{Disable: true}, Hedge: retry.Hedge{After: time.Millisecond}}); err != nil {
			t.Fatal(err)
		}
		if status, err := get(t, rt, "GET"); status != 200 || rt.Stats().HedgesWon != 1 {
			t.Fatal(status, err)
		}
		if err := rt.SetHost("a.example", retry.Config{}); err != nil { // which shows what is left
			t.Fatal(err)
		}
		if got, want := hostIn(rt.Stats(), "a.example").Allowance, float64(defaultTokens-3*cost); got < want || got > want+1 {
			t.Errorf("%v tokens are left, want %v", got, want)
		}
	})
}
