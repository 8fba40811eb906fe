package chaintest

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestOutageOf503: a server that says only 503 for a while is broken and not a
// limiter. It is left alone, and used again soon after it is back.
func TestOutageOf503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down, up = time.Second, 4500 * time.Millisecond
		start := time.Now()
		var sent, good atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			at := time.Since(start)
			if at >= down && at < up {
				sent.Add(1)
				return testnet.Answer(r, 503, nil, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		var wg sync.WaitGroup
		for time.Since(start) < 7*time.Second {
			wg.Go(func() {
				begun := time.Since(start)
				resp, err := rt.RoundTrip(get(t, "http://h/"))
				if err != nil {
					return
				}
				resp.Body.Close()
				if resp.StatusCode == 200 && begun >= up+time.Second && time.Since(start) < begun+500*time.Millisecond {
					good.Add(1)
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		wg.Wait()
		if n := sent.Load(); n > 100 {
			t.Errorf("%d attempts while down, want at most a tenth of 700", n)
		}
		if n := good.Load(); n < 270 { // of 300 in the last one and a half seconds
			t.Errorf("%d calls served promptly from a second after the server is back, want 300", n)
		}
	})
}
