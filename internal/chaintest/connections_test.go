package chaintest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// Calls that wait until the base has a connection for them are neither lost nor
// a sign that the host is slow, however long they wait.
func TestCallsThatWaitForAConnectionAreNotLost(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, n, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					testnet.Wait(r.Context(), time.Second)
				}), http2)
				base.MaxConnsPerHost = 2
				rt := must(weir.New(base, weir.Config{}))(t)
				var wg sync.WaitGroup
				for range 200 {
					wg.Go(func() {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil {
							t.Error(err)
							return
						}
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					})
				}
				wg.Wait()
				if state := rt.Circuits().State("h"); state != breaker.Closed || n.Dialed.Load() > 2 {
					t.Errorf("the circuit is %v with %d connections, want it closed with at most 2", state, n.Dialed.Load())
				}
				if s := rt.Stats().Retry; s.Attempts != 200 {
					t.Errorf("%d attempts for 200 calls, want one each", s.Attempts)
				}
				rt.Close()
				stop()
			})
		})
	}
}

// Callers with deadlines who leave the queue for connections are no sign of that either, and
// those that stay are served.
func TestCallersWhoLeaveTheQueueForConnectionsHarmNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			testnet.Wait(r.Context(), time.Second)
		}), false)
		base.MaxConnsPerHost = 1
		rt := must(weir.New(base, weir.Config{}))(t)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				client := http.Client{Transport: rt}
				if i%3 > 0 {
					client.Timeout = 2500 * time.Millisecond
				}
				resp, err := client.Get("http://h/")
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				} else if i%3 == 0 {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, c := range rt.Stats().Breaker.Circuits {
			t.Errorf("callers who left the queue are counted as failures: %+v", c)
		}
		rt.Close()
		stop()
	})
}
