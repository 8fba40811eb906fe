package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestALimiterWhoseAnswersTakeLongLosesHardlyACall: the host refuses at once and works for seconds on
// what it accepts, as hosts of language models do. It is asked for somewhat more than its
// rate for half a minute. Hardly anybody waits until MaxWait to find out what it accepts: up
// to seven of ten would if each answer were awaited.
func TestALimiterWhoseAnswersTakeLongLosesHardlyACall(t *testing.T) {
	const trip, load, span = 40 * time.Millisecond, 1.2, 30
	for _, tt := range []struct {
		rate, burst float64
		works       time.Duration
		after       string // Retry-After
	}{
		{20, 20, 10 * time.Second, ""}, {20, 20, 10 * time.Second, "1"}, {5, 5, 10 * time.Second, ""}, {5, 5, 10 * time.Second, "1"},
		{20, 20, 2 * time.Second, ""},
	} {
		t.Run(fmt.Sprintf("%v per s of %v, Retry-After %q, %v", tt.rate, tt.burst, tt.after, tt.works), func(t *testing.T) {
			var lost atomic.Int64
			n := int(span * tt.rate)
			for seed := range uint64(3) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					dice := rand.New(rand.NewPCG(seed, 9))
					exp := func() time.Duration { // of mean a second
						mu.Lock()
						defer mu.Unlock()
						return time.Duration(dice.ExpFloat64() * 1e9)
					}
					server := limitReq(tt.rate, tt.burst, 0, nil)
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						time.Sleep(trip/2 + exp()/500)
						resp, err := server(r)
						if resp.StatusCode == 200 {
							time.Sleep((tt.works + time.Duration(tt.works.Seconds()*float64(exp()))) / 2)
						} else if resp.StatusCode = 429; tt.after != "" {
							resp.Header.Set("Retry-After", tt.after)
						}
						time.Sleep(trip / 2)
						return resp, err
					}), weir.Config{}))(t)
					var wg sync.WaitGroup
					for range n {
						time.Sleep(time.Duration(float64(exp()) / load / tt.rate))
						wg.Go(func() {
							resp, err := rt.RoundTrip(get(t, "http://h/"))
							if err != nil || resp.StatusCode != 200 {
								lost.Add(1)
							}
							if err == nil {
								resp.Body.Close()
							}
						})
					}
					wg.Wait()
				})
			}
			if t.Logf("%d of %d lost", lost.Load(), 3*n); lost.Load() > int64(3*n/20) {
				t.Errorf("%d of %d calls lost, want a twentieth", lost.Load(), 3*n)
			}
		})
	}
}
