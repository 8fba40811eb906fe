package throttle_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A kind of request of which some wait is not forgotten for others, however long they wait, nor is what
// was found of it: else those that come would be refused.
func TestAKindIsKeptWhileRequestsOfItWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const per = 3 * time.Minute
		var last time.Time
		refused := 0
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			if !strings.HasPrefix(r.URL.Path, "/rare/") {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			if time.Since(last) < per {
				refused++
				return testnet.Answer(r, 429, nil, nil), nil
			}
			last = time.Now()
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{MaxWait: time.Hour})
		get := func(path string) {
			for status := 0; status != 200; {
				if resp, err := testnet.Get(t, t.Context(), tr, "http://h/"+path); err == nil {
					resp.Body.Close()
					status = resp.StatusCode
				}
			}
		}
		for i := range 10 { // so that it is found that this kind is limited, and that no other is
			get(fmt.Sprintf("rare/%d", i))
			get("other/x")
			get("other/x")
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { get(fmt.Sprintf("rare/a%d", i)) })
		}
		synctest.Wait()
		refused = 0
		for round := range 4 {
			time.Sleep(2 * time.Minute)
			if throttle.Waiting(t, tr) == 0 {
				t.Fatal("nobody waits")
			}
			for i := range 2 * throttle.MostKinds {
				get(fmt.Sprintf("more%d/x", i))
			}
			for i := range 3 {
				wg.Go(func() { get(fmt.Sprintf("rare/%d-%d", round, i)) })
			}
			synctest.Wait()
		}
		wg.Wait()
		if refused > 3 {
			t.Errorf("of 16 calls %d were refused, want none, or as many as show that the limit is what it was", refused)
		}
	})
}
