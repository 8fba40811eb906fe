package chaintest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
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
	for _, polls := range []int{4, 20} {
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
			t.Fatalf("%d of %d calls have come", n, calls)
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
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
