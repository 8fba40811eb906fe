package weir_test

import (
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

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestPatience: with Patience, an outage shorter than the callers' patience
// costs no request an error that has an attempt left when the circuit opens,
// however the outage shows and however requests come.
func TestPatience(t *testing.T) {
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
	var attempts, exhausted atomic.Int64
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
			if errors.As(err, &used) && used.Reason == retry.Exhausted {
				exhausted.Add(1) // before the circuit opened
				return
			}
			if err != nil {
				t.Errorf("request %d after %v: %v", i, time.Since(start), err)
				return
			}
			if resp.StatusCode != 200 { // its third, before the circuit opened
				exhausted.Add(1)
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	// A circuit opens after 20 failures of any kind.
	if n := exhausted.Load(); n > 8 {
		t.Errorf("%d requests had no attempts left", n)
	}
	// Those under way when the circuit opens have had an attempt; beyond that
	// there are only probes.
	if n := attempts.Load(); n > 300 {
		t.Errorf("%d attempts for 100 requests", n)
	}
	if d := time.Since(start); d > lasts*3+time.Minute {
		t.Errorf("took %v for an outage of %v", d, lasts)
	}
}
