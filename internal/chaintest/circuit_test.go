package chaintest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// Five calls in a row that get no answer open the circuit, however quickly they come one
// after another, and however soon after an answer.
func TestFiveCallsWithoutAnAnswerOpenTheCircuit(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			down := false
			client := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(200 * time.Microsecond)
				if down {
					return nil, syscall.ECONNRESET
				}
				time.Sleep(300 * time.Microsecond)
				return testnet.Answer(r, 200, nil, http.NoBody), nil
			}), weir.Config{Retry: retry.Config{MaxAttempts: 1}}))(t)
			call := func() error {
				resp, err := client.RoundTrip(get(t, "http://h/").WithContext(t.Context()))
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			down = true
			for range 5 {
				_ = call()
				time.Sleep(apart)
			}
			if !errors.As(call(), new(*breaker.Error)) {
				t.Errorf("%v apart: five calls failed, and the circuit let a sixth go", apart)
			}
		})
	}
}

// TestTheFirstCallersInAHurryCloseNobodyOut: how long answers take is known although nothing has
// failed before, so the first callers who had too little time say nothing of the host.
func TestTheFirstCallersInAHurryCloseNobodyOut(t *testing.T) {
	for _, slow := range []time.Duration{3 * time.Second, 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				if err := testnet.Wait(r.Context(), slow); err != nil {
					return nil, err
				}
				return stub(r)
			}), weir.Config{}))(t)
			call := func(d time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				if resp, err := testnet.Get(t, ctx, rt, "http://h/"); err == nil {
					resp.Body.Close()
				}
			}
			for range 2 {
				call(20 * time.Second)
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { call(slow / 2) })
			}
			all.Wait()
			if got := rt.Circuits().State("h"); got != breaker.Closed {
				t.Errorf("answers take %v, and 20 callers waited for half of that: %v", slow, rt.Circuits().Stats().Circuits)
			}
		})
	}
}
