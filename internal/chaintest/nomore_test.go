package chaintest

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestALimitThatIsStatedNoMoreIsWaitedForOnce: a server that says that nothing is left, and
// from then on states no limit and accepts everything, is waited for until its reset, or for
// MaxPause. Then calls are neither held up nor lost.
func TestALimitThatIsStatedNoMoreIsWaitedForOnce(t *testing.T) {
	const states = 2 * time.Second // for so long
	for _, test := range []struct {
		reset string
		once  time.Duration // may be waited for: a minute longer if units come back all the time
	}{
		{"60", time.Minute}, {"", time.Minute}, {"1m0s", 2 * time.Minute}, {"24h", 6 * time.Minute},
	} {
		for _, rate := range []int{2, 50} {
			t.Run(fmt.Sprint(test.reset, " ", rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var sent, lost, late atomic.Int64
					start := time.Now()
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						time.Sleep(roundTrip)
						h := http.Header{}
						if time.Since(start) < states {
							left := max(0, 2*rate-int(sent.Add(1)))
							dialects()[0].say(h, strconv.Itoa(2*rate), strconv.Itoa(left), test.reset)
						}
						return testnet.Answer(r, 200, h, nil), nil
					}), weir.Config{}))(t)
					var wg sync.WaitGroup
					for time.Since(start) < 3*test.once {
						counts := time.Since(start) > states+test.once+20*time.Second
						wg.Go(func() {
							n, took := (load{callers: 1, calls: 1}).round(t, rt)
							if lost.Add(n); counts && (n > 0 || took > time.Second) {
								late.Add(1)
							}
						})
						time.Sleep(time.Second / time.Duration(rate))
					}
					wg.Wait()
					if late.Load() > 0 {
						t.Errorf("%d calls were lost; after %v %d were lost or late, want none", lost.Load(), test.once, late.Load())
					}
				})
			})
		}
	}
}
