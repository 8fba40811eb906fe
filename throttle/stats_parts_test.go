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

// A pause of a part of a kind of request is no pause of the kind, nor of the host: the other parts go on.
// Whoever waits for it waits.
func TestAPausedPartPausesNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := oneEach(10 * time.Second)
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/v0/app1/long") {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return serve(r)
		}), throttle.Config{})
		findParts(t, tr, 10*time.Second)
		time.Sleep(time.Minute)
		for i := range 5 {
			mustGet(t, tr, fmt.Sprintf("http://h/v0/app1/long%d", i))
		}
		state := func(want throttle.State) {
			t.Helper()
			h := statsOf(t, tr)
			if h.State != want || h.Routes[0].State != want {
				t.Errorf("the host is %s, its route %s (%s); want %s", h.State, h.Routes[0].State, h.Routes[0].Why, want)
			}
		}
		state(throttle.StateOK)
		var wg sync.WaitGroup
		wg.Go(func() { mustGet(t, tr, "http://h/v0/app1/a") })
		synctest.Wait()
		state(throttle.StateWaiting)
		wg.Wait()
	})
}
