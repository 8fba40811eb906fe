package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestLongPollsBesideACall: through the whole chain, a call to a fresh host goes
// out in less than a second whatever waits there for news; and on a known one a
// call that fails while a long poll is out makes the next one wait no longer.
func TestLongPollsBesideACall(t *testing.T) {
	for _, polls := range []int{4, 20, 24} {
		t.Run(fmt.Sprint(polls), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := false
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					d := 20 * time.Millisecond
					if r.Method == "GET" {
						d = 25 * time.Second
					}
					if err := testnet.Wait(r.Context(), d); err != nil {
						return nil, err
					}
					if fails && r.Method == "POST" {
						return nil, errors.New("connection refused")
					}
					return stub(r)
				}), weir.Config{}))(t)
				var wg sync.WaitGroup
				for range polls {
					wg.Go(func() { mustAnswer(t, rt, get(t, "http://h/updates")) })
				}
				synctest.Wait()
				post := func() time.Duration {
					start := time.Now()
					r, err := http.NewRequestWithContext(t.Context(), "POST", "http://h/send", nil)
					if err != nil {
						t.Fatal(err)
					}
					if resp, err := rt.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
					return time.Since(start)
				}
				if took := post(); took >= time.Second {
					t.Errorf("the first call took %v, want less than a second", took)
				}
				fails = true
				post()
				fails = false
				if took := post(); took > 20*time.Millisecond {
					t.Errorf("the call after one that failed took %v, want 20ms", took)
				}
				wg.Wait()
			})
		})
	}
}

func mustAnswer(t *testing.T, rt http.RoundTripper, r *http.Request) {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
}

// TestAHealthyHostThatAnswersSlowlyLosesNothing: with the default settings no call to it is
// lost, and none waits for longer than an answer takes.
func TestAHealthyHostThatAnswersSlowlyLosesNothing(t *testing.T) {
	for _, takes := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 25 * time.Second} {
		for _, rate := range []int{5, 10, 20} {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					if err := testnet.Wait(r.Context(), takes); err != nil {
						return nil, err
					}
					return stub(r)
				}), weir.Config{}))(t)
				var wg sync.WaitGroup
				for range 3 * 60 * rate {
					wg.Go(func() {
						start := time.Now()
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil || resp.StatusCode != 200 {
							t.Errorf("answers of %v, %d/s: %v, %v", takes, rate, resp, err)
						} else if d := time.Since(start) - takes; d > takes+5*time.Second {
							t.Errorf("answers of %v, %d/s: a call took %v longer than its answer, want at most %v", takes, rate, d, takes+5*time.Second)
						}
					})
					time.Sleep(time.Second / time.Duration(rate))
				}
				wg.Wait()
			})
		}
	}
}

// TestASlowHostSoonGetsAllCalls: weir holds back calls to a new host until it has answered
// some. If its answers take long, all calls are sent after a short while, however many there
// are, and all are served whose callers wait long enough for an answer.
func TestASlowHostSoonGetsAllCalls(t *testing.T) {
	always := func(d time.Duration) func(*rand.Rand) time.Duration {
		return func(*rand.Rand) time.Duration { return d }
	}
	atTimes := func(d time.Duration) func(*rand.Rand) time.Duration {
		return func(dice *rand.Rand) time.Duration { return []time.Duration{20 * time.Millisecond, d}[dice.IntN(2)] }
	}
	random := func(mean time.Duration) func(*rand.Rand) time.Duration {
		return func(dice *rand.Rand) time.Duration { return time.Duration(dice.ExpFloat64() * float64(mean)) }
	}
	for _, tt := range []struct {
		name     string
		takes    func(*rand.Rand) time.Duration
		rate     int
		deadline time.Duration
		after    time.Duration // from then on nearly all are served
	}{
		{"0.7 s, 500/s", always(700 * time.Millisecond), 500, 5 * time.Second, 8 * time.Second},
		{"5 s, 100/s", always(5 * time.Second), 100, 10 * time.Second, time.Second},
		{"9 s, 100/s", always(9 * time.Second), 100, 10 * time.Second, 18 * time.Second},
		{"12 s, 100/s", always(12 * time.Second), 100, 13 * time.Second, 24 * time.Second},
		{"half of them 9 s, 100/s", atTimes(9 * time.Second), 100, 10 * time.Second, 3 * time.Second},
		{"half of them 20 s, 100/s", atTimes(20 * time.Second), 100, 30 * time.Second, 0},
		{"1.9 s in the mean, 500/s for 2 s", random(1900 * time.Millisecond), 500, 2 * time.Second, 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					if err := testnet.Wait(r.Context(), r.Context().Value(valueKey{}).(time.Duration)); err != nil {
						return nil, err
					}
					return stub(r)
				}), weir.Config{}))(t)
				dice, start := rand.New(rand.NewPCG(3, 4)), time.Now()
				var all int
				var served atomic.Int64
				var wg sync.WaitGroup
				for at := time.Duration(0); at < tt.after+10*time.Second; at = time.Since(start) {
					takes := tt.takes(dice)
					counts := at >= tt.after && takes < tt.deadline
					if counts {
						all++
					}
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), valueKey{}, takes), tt.deadline)
						defer cancel()
						if resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx)); err == nil {
							resp.Body.Close()
							if counts {
								served.Add(1)
							}
						}
					})
					time.Sleep(time.Second / time.Duration(tt.rate))
				}
				wg.Wait()
				t.Logf("%d of %d", served.Load(), all)
				if lost := int64(all) - served.Load(); lost > int64(all/100) {
					t.Errorf("%d of %d calls that would be answered in time were lost after %v, want one in a hundred at most", lost, all, tt.after)
				}
			})
		})
	}
}

// TestGatheredCallsLeaveNothing: a server that answers nobody before 25 calls have
// come answers all of them, and no goroutine is left (net/http's
// TestTransportPersistConnLeak).
func TestGatheredCallsLeaveNothing(t *testing.T) {
	const calls = 25
	come, all := make(chan struct{}, calls), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		come <- struct{}{}
		select {
		case <-all:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	base := &http.Transport{}
	rt := must(weir.New(base, weir.Config{}))(t)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() { mustAnswer(t, rt, get(t, srv.URL).WithContext(ctx)) })
	}
	for n := range calls {
		select {
		case <-come:
		case <-ctx.Done():
			t.Fatalf("%d of %d calls have reached the server, want all", n, calls)
		}
	}
	close(all)
	wg.Wait()
	base.CloseIdleConnections()
	for range 100 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		testnet.Wait(t.Context(), 10*time.Millisecond)
	}
	t.Errorf("%d goroutines are left, want the %d of before", runtime.NumGoroutine(), before)
}

// endless is a source that never ends and never blocks.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A long upload that goes on is sent once, and says nothing against its host.
func TestLongUploads(t *testing.T) {
	const size = 60 << 20
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got atomic.Int64
				base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for {
						n, err := io.CopyN(io.Discard, r.Body, 1<<20)
						if got.Add(n); err != nil {
							return
						}
						testnet.Wait(r.Context(), time.Second)
					}
				}), http2)
				rt := must(weir.New(base, weir.Config{}))(t)
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						r := get(t, "http://h/upload")
						r.Method, r.Body, r.ContentLength = "PUT", testnet.BodyOf(io.LimitReader(endless{}, size)), size
						r.GetBody = func() (io.ReadCloser, error) { return testnet.BodyOf(io.LimitReader(endless{}, size)), nil }
						resp, err := rt.RoundTrip(r)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					})
				}
				wg.Wait()
				if sent := got.Load(); sent != 2*size {
					t.Errorf("%d MiB arrived, want two bodies of %d MiB", sent>>20, size>>20)
				}
				for range 10 {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				rt.Close()
				stop()
			})
		})
	}
}
