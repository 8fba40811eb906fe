package chaintest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// Where each of several servers behind a balancer counts for itself, and only refusals
// state a limit, that is the limit of one server. Callers get what all of them take.
func TestLimitsOfServersThatCountAloneAreUsedInFull(t *testing.T) {
	for _, servers := range []int{2, 4, 8} {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				const demand, seconds = 20, 60
				size := demand * 6 / 5 / servers // a second, so five sixths of what all take are asked for
				var mu sync.Mutex
				turn, used, second := 0, make([]int, servers), int64(0)
				client := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(20 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					if now := time.Now().Unix(); now != second {
						second = now
						clear(used)
					}
					turn = (turn + 1) % servers
					if used[turn] < size {
						used[turn]++
						return testnet.Answer(r, 200, nil, nil), nil
					}
					h := http.Header{"X-Ratelimit-Limit": {strconv.Itoa(size)}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}
					if after {
						h.Set("Retry-After", "1")
					}
					return testnet.Answer(r, 429, h, nil), nil
				}), weir.Config{}))(t)
				random := rand.New(rand.NewPCG(uint64(servers), 31))
				came, lost := 0, map[string]int{}
				var wg sync.WaitGroup
				for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); {
					came++
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						resp, err := client.RoundTrip(get(t, "http://h/v1").WithContext(ctx))
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							lost[fmt.Sprintf("%T", err)]++
						} else if resp.StatusCode != 200 {
							lost[strconv.Itoa(resp.StatusCode)]++
						}
					})
					time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second/demand)))
				}
				wg.Wait()
				if len(lost) > 0 {
					t.Errorf("%d servers, Retry-After %t: of %d calls these were lost: %v; want none", servers, after, came, lost)
				}
			})
		}
	}
}
