package chaintest

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

const slowDown = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`

// TestSlowDownIsNoOutage: a 503 that says in its body alone that it refuses for
// quota (S3) opens no circuit, unless nobody may read bodies; another does.
func TestSlowDownIsNoOutage(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		peek       int64
		opens      bool
	}{
		{"says so", slowDown, 0, false},
		{"says nothing", "<html><h1>503 Service Unavailable</h1></html>", 0, true},
		{"says so to nobody", slowDown, -1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened atomic.Int64
				var last atomic.Value
				last.Store("")
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(10 * time.Millisecond)
					return testnet.Answer(r, 503, http.Header{"Content-Type": {"application/xml"}}, testnet.NewBody(tt.body)), nil
				}), weir.Config{
					Throttle: throttle.Config{PeekBody: tt.peek, MaxWait: 30 * time.Second},
					Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
						if c.To == breaker.Open {
							opened.Add(1)
						}
					}},
				}))(t)
				var wg sync.WaitGroup
				for range 40 {
					wg.Go(func() {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil {
							return
						}
						b, err := io.ReadAll(resp.Body)
						if err != nil {
							t.Error(err)
						}
						last.Store(string(b))
						resp.Body.Close()
					})
				}
				wg.Wait()
				if got := opened.Load() > 0; got != tt.opens {
					t.Errorf("the circuit opened %d times", opened.Load())
				}
				if last.Load() != tt.body {
					t.Errorf("the body arrived as %q", last.Load())
				}
			})
		})
	}
}
