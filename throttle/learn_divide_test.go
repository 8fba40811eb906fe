package throttle_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// However many limits were told apart by paths before, whose names are gone, one more is: what is spent of
// one path holds up no other.
func TestLimitsAreToldApartHoweverManyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		name, used := "", map[string]int{}
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			used[r.URL.Path]++
			return testnet.Answer(r, 200, http.Header{"Ratelimit-Policy": {fmt.Sprintf("%q;q=60;w=60", name)}, "Ratelimit": {fmt.Sprintf("%q;r=%d;t=60", name, 60-used[r.URL.Path])}}, nil), nil
		}), throttle.Config{})
		for i := range 2 * throttle.MostQuotas {
			name = fmt.Sprint("n", i)
			clear(used)
			for i := range 60 {
				mustGet(t, tr, "http://h/k/"+[]string{"a", "b"}[i/6%2])
			}
			for used["/k/b"] < 60 {
				mustGet(t, tr, "http://h/k/b")
			}
			start := time.Now()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { mustGet(t, tr, "http://h/k/a") })
			}
			if wg.Wait(); time.Since(start) > 100*time.Millisecond {
				t.Fatalf("the spent limit of one path, the %d. that was told apart, held up 20 calls to another for %v", i+1, time.Since(start))
			}
			time.Sleep(2 * time.Minute)
		}
	})
}
