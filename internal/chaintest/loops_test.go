package chaintest

import (
	"io"
	"net/http"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestLoopsEndWhenTheCircuitOpens: without Patience, a request that is being
// retried when its host's circuit opens ends with the answer in hand.
func TestLoopsEndWhenTheCircuitOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			n++
			return testnet.Answer(r, 502, nil, testnet.NewBody("down")), nil
		}), weir.Config{
			Retry:   retry.Config{MaxAttempts: 100, Allowance: retry.Allowance{Disable: true}},
			Breaker: breaker.Config{MinCalls: 5, FailureRate: 0.5, OpenFor: time.Hour, MaxOpenFor: time.Hour},
		}))(t)
		resp, err := rt.RoundTrip(get(t, "http://h/"))
		if err != nil || resp.StatusCode != 502 {
			t.Fatalf("%v, %v; want the 502 in hand", resp, err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "down" || err != nil {
			t.Errorf("body %q, %v", b, err)
		}
		resp.Body.Close()
		if n != 5 || rt.Circuits().State("h") != breaker.Open {
			t.Errorf("%d attempts, circuit %v; want 5, open", n, rt.Circuits().State("h"))
		}
	})
}

// TestTheClockOfAnAttemptStartsWhenItIsSent: the clock of an attempt starts when it is sent,
// whatever it waited for.
func TestTheClockOfAnAttemptStartsWhenItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			tr := trip.From(r.Context())
			if got := tr.OnWire(); !got.Equal(time.Now()) {
				t.Errorf("attempt %d left at %v, the trip says %v", tr.Number, time.Now(), got)
			}
			if n++; n%3 == 2 {
				return testnet.Answer(r, 503, nil, testnet.NewBody("busy")), nil
			}
			return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
		}), weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("1/s burst 1")}}))(t)
		start := time.Now()
		for range 6 {
			resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
			resp.Body.Close()
		}
		if n != 9 || time.Since(start) < 8*time.Second {
			t.Errorf("%d attempts in %v, want 9 in 8s or more", n, time.Since(start))
		}
	})
}

// TestNoTimerIsLeft: timers that were left behind by requests to a server that
// fails now and then would fire later, each on a goroutine of its own.
func TestNoTimerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			switch n := n.Add(1); {
			case n%97 == 0:
				<-r.Context().Done()
				return nil, r.Context().Err()
			case n%11 == 0:
				return nil, io.ErrUnexpectedEOF
			case n%13 == 0:
				return testnet.Answer(r, 503, nil, testnet.NewBody("busy")), nil
			}
			return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
		}), weir.Config{Breaker: breaker.Config{Disable: true}}))(t)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 20 {
					resp, err := rt.RoundTrip(get(t, "http://h/"))
					if err != nil {
						continue // its attempts or the allowance are used up
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		before := goroutinesMade()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if made := goroutinesMade() - before; made > 20 { // the runtime's own
			t.Errorf("%d goroutines of timers began after 1000 requests were over, want at most the runtime's 20", made)
		}
	})
}

func goroutinesMade() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 { // before Go 1.26
		return 0
	}
	return s[0].Value.Uint64()
}
