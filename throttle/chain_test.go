package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

// loop stands for retry above the throttle: one trip for all its attempts.
type loop struct {
	t        *throttle.Transport
	attempts int
	hedge    bool
}

func (l *loop) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	r, tr, made := trip.Begin(r, trip.Retry, l.t.Link().Hosts)
	if made {
		defer func() { err = tr.End(err) }()
	}
	tr.Hedge = l.hedge
	for range l.attempts {
		tr.At(trip.Retry)
		tr.Next()
		if resp, err = l.t.RoundTrip(r); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// TestARetryKeepsItsPlace: the second attempt of an early request goes before
// the first attempts of those that came after it.
func TestARetryKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/s"), DisableLearning: true})
		var wg sync.WaitGroup
		for _, path := range []string{"/a", "/b", "/c"} {
			wg.Go(func() { mustGet(t, &loop{t: tr, attempts: 2}, "http://h"+path) })
			synctest.Wait()
		}
		wg.Wait()
		var got string
		for _, a := range b.Arrived {
			got += a.Path
		}
		if want := "/a/a/b/b/c/c"; got != want {
			t.Errorf("arrived in the order %s, want %s", got, want)
		}
	})
}

// TestWaitsOfARequestAreSummed: MaxWait bounds the waits of all attempts.
func TestWaitsOfARequestAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/2s"), MaxWait: 5 * time.Second, DisableLearning: true})
		_, err := get(t, t.Context(), &loop{t: tr, attempts: 9}, "http://h/")
		var e *throttle.Error
		if !errors.As(err, &e) || e.Reason != throttle.WaitTooLong || e.RetryAfter != 2*time.Second {
			t.Errorf("got %v, want a refusal of 2s", err)
		}
		sameTimes(t, b.Times(), 0, 2*time.Second, 4*time.Second)
	})
}

// A hedge that would have to wait is not sent.
func TestHedgesNeverQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/s"), DisableLearning: true})
		mustGet(t, tr, "http://h/")
		start := time.Now()
		_, err := get(t, t.Context(), &loop{t: tr, attempts: 1, hedge: true}, "http://h/")
		var e *throttle.Error
		if !errors.As(err, &e) || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want a refusal at once", err, time.Since(start))
		}
	})
}

func TestOutlookIsTheWaitThatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/10s, 5 tokens/s burst 5"), MaxWait: 15 * time.Second, DisableLearning: true})
		ask := func(ctx context.Context) (time.Duration, error) {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://h/", nil)
			return tr.Outlook(r)
		}
		if wait, err := ask(t.Context()); wait != 0 || err != nil {
			t.Errorf("idle: got %v, %v, want no wait", wait, err)
		}
		mustGet(t, tr, "http://h/")
		if wait, err := ask(t.Context()); wait != 10*time.Second || err != nil {
			t.Errorf("spent: got %v, %v, want 10s", wait, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with 3s left: got %v, want a refusal", err)
		}
		if _, err := ask(throttle.WithCost(t.Context(), throttle.Cost{"tokens": 6})); err == nil {
			t.Error("a cost that never fits has an outlook")
		}
		tr.Pause("h", time.Now().Add(time.Minute))
		var e *throttle.Error
		if _, err := ask(t.Context()); !errors.As(err, &e) || e.Reason != throttle.Paused || e.RetryAfter != time.Minute {
			t.Errorf("paused: got %v, want a refusal of 1m", err)
		}
		tr.Resume("h")
		if s := tr.Stats().Hosts[0]; s.Granted != 1 || s.InFlight != 0 || s.Queue != 0 {
			t.Errorf("an outlook left something behind: %+v", s)
		}
	})
}

// TestOverRealHTTP: trailers, connections and places over HTTP/1 and HTTP/2.
func TestOverRealHTTP(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.Copy(w, r.Body)
				w.Header().Set("X-Sum", r.Trailer.Get("X-In"))
			})
			base, n, stop := testnet.Server(t, handler, http2)
			defer stop()
			tr := newTransport(t, base, throttle.Config{Default: throttle.MustParseBudget("10/s, 1 in flight"), DisableLearning: true})
			client := &http.Client{Transport: tr}
			for range 3 {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a/", io.MultiReader(testnet.NewBody("hello")))
				r.Trailer = http.Header{"X-In": {"42"}}
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil || string(got) != "hello" || resp.Trailer.Get("X-Sum") != "42" {
					t.Errorf("http2 %v: got %q, %v, trailer %v", http2, got, err, resp.Trailer)
				}
				resp.Body.Close()
			}
			if n.Dialed.Load() != 1 {
				t.Errorf("%d connections, want 1", n.Dialed.Load())
			}
			client.CloseIdleConnections()
			synctest.Wait()
			if n.Open() != 0 {
				t.Errorf("%d connections left", n.Open())
			}
		})
	}
}

// TestTwoThrottlesInOneChain keep to themselves.
func TestTwoThrottlesInOneChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		inner := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/s"), DisableLearning: true})
		outer := newTransport(t, inner, throttle.Config{Default: throttle.MustParseBudget("2/5s burst 2"), DisableLearning: true})
		for range 3 {
			mustGet(t, outer, "http://h/")
		}
		at := b.Times()
		if at[0] != 0 || at[1] < time.Second || at[2] < 5*time.Second || at[2] > 6*time.Second {
			t.Errorf("arrived at %v, want both budgets kept", at)
		}
	})
}

// TestSettleReachesAllThrottles: what a request really cost counts in every
// throttle of a chain, whatever stands between them.
func TestSettleReachesAllThrottles(t *testing.T) {
	type hidden struct{ http.RoundTripper }
	for name, between := range map[string]func(http.RoundTripper) http.RoundTripper{
		"next to each other": func(rt http.RoundTripper) http.RoundTripper { return rt },
		"strangers between":  func(rt http.RoundTripper) http.RoundTripper { return hidden{rt} },
	} {
		t.Run(name, func(t *testing.T) {
			inner := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1000 tokens/m burst 1000")})
			outer := newTransport(t, between(inner), throttle.Config{Default: throttle.MustParseBudget("100 tokens/m burst 100")})
			resp, err := get(t, throttle.WithCost(t.Context(), throttle.Cost{"tokens": 50}), outer, "http://h/")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"<nil>", "throttle: Settle: the response was settled before"} {
				if err := fmt.Sprint(throttle.Settle(resp, throttle.Cost{"tokens": 10})); err != want {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			for tr, want := range map[*throttle.Transport]float64{inner: 990, outer: 90} {
				if got := tr.Stats().Hosts[0].Budgets[0].Left; got != want {
					t.Errorf("%v left, want %v", got, want)
				}
			}
		})
	}
}

// TestWhatWasNotSentSaysSo: a refusal of a throttle alone proves that nothing
// was sent; an error of the base does not.
func TestWhatWasNotSentSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := errors.New("broken")
		tr := newTransport(t, newBase(func(*http.Request) (*http.Response, error) { return nil, fail }), throttle.Config{Default: throttle.MustParseBudget("1/h"), MaxWait: -1})
		if _, err := get(t, t.Context(), tr, "http://h/"); !errors.Is(err, fail) || errors.Is(err, notsent.Err) {
			t.Errorf("got %v, want the base's error, and no claim that nothing was sent", err)
		}
		_, err := (&http.Client{Transport: tr}).Get("http://h/")
		var e *throttle.Error
		if !errors.As(err, &e) || !errors.Is(err, notsent.Err) || notsent.Refused(err) != notsent.Throttle {
			t.Errorf("got %v, want a refusal by the throttle that says that nothing was sent", err)
		}
	})
}

// TestABaseThatReturnsNothingIsAnError: a base that returns nothing at all, and requests that name no
// host.
func TestABaseThatReturnsNothingIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(func(*http.Request) (*http.Response, error) { return nil, nil }), throttle.Config{Default: throttle.MustParseBudget("9/h, 1 in flight")})
		for range 2 {
			if resp, err := get(t, t.Context(), tr, "http://h/"); err == nil || resp != nil {
				t.Errorf("got %v, %v, want an error", resp, err)
			}
		}
		real := newTransport(t, nil, throttle.Config{})
		for _, r := range []*http.Request{{}, {Method: "GET", URL: new(url.URL)}} {
			body := testnet.NewBody("x")
			r.Body = body
			if resp, err := real.RoundTrip(r); err == nil || resp != nil || body.Closes() == 0 {
				t.Errorf("%v: got %v, %v, body closed %d times, want an error and a closed body", r.URL, resp, err, body.Closes())
			}
		}
	})
}

// Where a request goes at once, its outlook is no wait, also for one that may
// not wait and where a rate is known.
func TestOutlookOfNoWait(t *testing.T) {
	for name, c := range map[string]throttle.Config{
		"a budget that warms up": {Default: throttle.MustParseBudget("5/s warmup 4s"), MaxWait: -1},
		"a rate that was found":  {MaxWait: -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refuse := false
				tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
					time.Sleep(10 * time.Millisecond)
					if refuse {
						return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, nil), nil
					}
					return testnet.Answer(r, 200, nil, nil), nil
				}), c)
				for range 20 {
					mustGet(t, tr, "http://h/")
					time.Sleep(time.Second)
				}
				refuse = true
				mustGet(t, tr, "http://h/")
				refuse = false
				time.Sleep(time.Minute)
				r, err := http.NewRequestWithContext(t.Context(), "GET", "http://h/", nil)
				if err != nil {
					t.Fatal(err)
				}
				if wait, err := tr.Outlook(r); wait != 0 || err != nil {
					t.Errorf("outlook %v, %v, want none", wait, err)
				}
				mustGet(t, tr, "http://h/")
			})
		})
	}
}
