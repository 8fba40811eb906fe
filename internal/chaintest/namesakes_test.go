package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// TestLimitsOfOneNameStallNobody: a program that is new to a server calls several of its
// endpoints at once, and each has a limit of its own, stated by the name of all. While these are
// told apart some requests draw on a limit and others not, and none waits for those that are over.
func TestLimitsOfOneNameStallNobody(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls int
		path  func(dice *rand.Rand, i int) string
		of    func(path string) string
		limit counter
		ends  time.Duration // the first window
		most  time.Duration
	}{
		{"X, two endpoints with fifteen left until 50 s", 120, func(_ *rand.Rand, i int) string {
			return [...]string{"/2/tweets/search/recent", fmt.Sprintf("/2/users/%d/followers", 1000+i)}[i%2]
		}, func(path string) string { return path[strings.LastIndex(path, "/"):] },
			counter{size: 75, used: 60, per: 15 * time.Minute}, 50 * time.Second, 55 * time.Second},
		{"Discord, ten channels, half of the calls to one", 90, func(dice *rand.Rand, _ int) string {
			return fmt.Sprintf("/api/v10/channels/%d/messages", int64(1e18)+max(0, dice.Int64N(20)-10))
		}, func(path string) string { return path },
			counter{size: 5, per: 5 * time.Second}, 0, 80 * time.Second}, // chance decides how many go to the one: 72 s in one of ten runs
	} {
		for seed := range uint64(testnet.Drawn(12, 4)) {
			dice := rand.New(rand.NewPCG(seed, 11))
			s := &perName{of: func(r *http.Request) string { return test.of(r.URL.Path) }, delay: func() time.Duration {
				return 20*time.Millisecond + time.Duration(dice.ExpFloat64()*float64(80*time.Millisecond))
			}}
			shared(t, fmt.Sprint(test.name, " ", seed), s, func(t *testing.T, rt http.RoundTripper) {
				start := time.Now()
				s.make = func(string) *counter {
					c := test.limit
					c.ends = start.Add(test.ends)
					return &c
				}
				var next, lost atomic.Int64
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						for i := int(next.Add(1)); i <= test.calls; i = int(next.Add(1)) {
							s.mu.Lock()
							path := test.path(dice, i)
							s.mu.Unlock()
							if status, _ := visit(t, rt, path); status != 200 {
								lost.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); lost.Load() > 0 || took > test.most {
					t.Errorf("%d of %d calls were lost in %v, want none in %v", lost.Load(), test.calls, took, test.most)
				}
			})
		}
	}
}
