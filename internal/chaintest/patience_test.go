package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
)

// TestPatienceOutlastsAnOutage: with Patience, an outage shorter than the callers' patience
// costs no request an error, however the outage shows and however requests
// come.
func TestPatienceOutlastsAnOutage(t *testing.T) {
	outages := map[string]func(*http.Request) (*http.Response, error){
		"refused": func(r *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		},
		"lost": func(r *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"503": func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 503, nil, testnet.NewBody("down")), nil
		},
	}
	for name, outage := range outages {
		for _, lasts := range []time.Duration{2 * time.Second, 20 * time.Second, 2 * time.Minute} {
			for _, apart := range []time.Duration{0, 20 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s for %v, requests %v apart", name, lasts, apart), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { patience(t, outage, lasts, apart) })
				})
			}
		}
	}
}

func patience(t *testing.T, outage testnet.Func, lasts, apart time.Duration) {
	start := time.Now()
	var attempts, failed atomic.Int64
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		attempts.Add(1)
		time.Sleep(10 * time.Millisecond)
		if time.Since(start) < lasts {
			return outage(r)
		}
		return stub(r)
	}), weir.Config{Breaker: breaker.Config{Patience: 10 * time.Minute}}))(t)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			var used *retry.Error
			switch {
			case errors.As(err, &used) && used.Reason == retry.Exhausted:
				failed.Add(1)
			case err != nil:
				t.Errorf("request %d after %v: %v", i, time.Since(start), err)
			default:
				if resp.Body.Close(); resp.StatusCode != 200 {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests failed, want none", n)
	}
	// Those under way when the circuit opens have had an attempt; beyond that
	// there are only probes.
	if n := attempts.Load(); n > 170 {
		t.Errorf("%d attempts for 100 requests, want at most 170", n)
	}
	if d := time.Since(start); d > lasts*3+time.Minute {
		t.Errorf("took %v for an outage of %v, want at most %v", d, lasts, lasts*3+time.Minute)
	}
}

// TestWithPatienceRequestsWithoutAttemptsWait: a request whose attempts are used up while its
// host fails every call waits with the others, before the circuit opens and
// after.
func TestWithPatienceRequestsWithoutAttemptsWait(t *testing.T) {
	for _, x := range []struct {
		attempts int
		apart    time.Duration
		most     int // that fail: those before the host has failed five times
	}{{2, 5 * time.Millisecond, 0}, {3, 5 * time.Millisecond, 0}, {4, 5 * time.Millisecond, 0}, {3, 50 * time.Millisecond, 0}, {3, 100 * time.Millisecond, 0}, {3, 200 * time.Millisecond, 1}} {
		synctest.Test(t, func(t *testing.T) {
			const down, up = time.Second, 4500 * time.Millisecond
			start := time.Now()
			var sent, failed atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Millisecond)
				if at := time.Since(start); at >= down && at < up {
					sent.Add(1)
					return testnet.Answer(r, 503, nil, nil), nil
				}
				return stub(r)
			}), weir.Config{
				Breaker: breaker.Config{Patience: 10 * time.Second},
				Retry: retry.Config{MaxAttempts: x.attempts, Backoff: func() backoff.BackOff {
					return backoff.NewConstantBackOff(25 * time.Millisecond)
				}},
			}))(t)
			var wg sync.WaitGroup
			for time.Since(start) < 6*time.Second {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
					if err != nil || resp.StatusCode != 200 {
						failed.Add(1)
					}
					if err == nil {
						resp.Body.Close()
					}
				})
				time.Sleep(x.apart)
			}
			wg.Wait()
			if n := failed.Load(); n > int64(x.most) {
				t.Errorf("%d attempts, a call every %v: %d failed, want at most %d", x.attempts, x.apart, n, x.most)
			}
			if n := sent.Load(); n > 70 {
				t.Errorf("%d attempts, a call every %v: %d attempts while down, want at most a tenth of 700", x.attempts, x.apart, n)
			}
		})
	}
}

// TestPatienceDoesNotProlongOnePathThatFails: where most calls are good, one that always fails
// ends with its last attempt, as without Patience.
func TestPatienceDoesNotProlongOnePathThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts, exhausted := 0, 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/bad" {
				return stub(r)
			}
			attempts++
			return testnet.Answer(r, 500, nil, nil), nil
		}), weir.Config{
			Breaker: breaker.Config{Patience: 10 * time.Second},
			Retry: retry.Config{OnAttempt: func(a retry.Attempt) {
				if a.Reason == retry.Exhausted {
					exhausted++
				}
			}},
		}))(t)
		for i := range 20 {
			for j := range 10 {
				url := "http://h/"
				if j == 9 {
					url += "bad"
				}
				resp, err := rt.RoundTrip(get(t, url))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			if attempts != 3*(i+1) || exhausted != i+1 {
				t.Fatalf("%d attempts of %d calls, want 3 each; %d were told so", attempts, i+1, exhausted)
			}
		}
	})
}

// TestNobodyWaitsLongerThanPatience: a host that never comes back holds nobody for longer than
// Patience, and is asked no more than its circuit allows.
func TestNobodyWaitsLongerThanPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			attempts.Add(1)
			return testnet.Answer(r, 503, nil, nil), nil
		}), weir.Config{Breaker: breaker.Config{Patience: 30 * time.Second}}))(t)
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				resp, err := rt.RoundTrip(get(t, "http://h/"))
				if err != nil || resp.StatusCode != 503 {
					t.Errorf("%v, %v", resp, err)
				}
			})
		}
		wg.Wait()
		// 20 open the circuit, 20 are probes of the first 5 s, then fewer and
		// fewer, and at most one a second for those whose time runs out.
		if d, n := time.Since(start), attempts.Load(); d < 25*time.Second || d > 32*time.Second || n > 60 {
			t.Errorf("%d attempts in %v, want at most 60 in 25 to 32 s", n, d)
		}
	})
}
