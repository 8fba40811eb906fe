package throttle_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A limit that is not mentioned any more is forgotten after ten minutes, or two
// of its windows.
func TestQuotasAreForgotten(t *testing.T) {
	for _, test := range []struct {
		window, after time.Duration
		kept          bool
	}{{0, 10 * time.Minute, true}, {0, 10*time.Minute + 1, false}, {time.Hour, 2 * time.Hour, true}, {time.Hour, 2*time.Hour + 1, false}, {sec, 10 * time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			l := left(9, 0)
			l.Name, l.Window = "a", headers.Opt[time.Duration]{Value: test.window, Known: test.window > 0}
			tr := telling(t, throttle.Config{}, stating(l), speech{})
			mustGet(t, tr, "http://h/x")
			time.Sleep(test.after)
			mustGet(t, tr, "http://h/x")
			if _, limits, _ := throttle.LearnedKept(tr, "h"); (limits == 1) != test.kept {
				t.Errorf("%+v: kept %t", test, !test.kept)
			}
		})
	}
}

// What was under way when a limit was first heard of is under way no longer once it is
// answered, whatever each of its requests cost.
func TestRequestsFromBeforeALimitWasKnownEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, mu := 2000, sync.Mutex{}
		cost := func(r *http.Request) int { n, _ := strconv.Atoi(r.URL.Query().Get("tokens")); return n }
		b := newBase(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(1000/cost(r)) * time.Millisecond) // the dearest is answered first
			mu.Lock()
			defer mu.Unlock()
			left -= cost(r)
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit-Tokens": {"2000"}, "X-Ratelimit-Remaining-Tokens": {strconv.Itoa(left)}, "X-Ratelimit-Reset-Tokens": {"60s"}}, http.NoBody), nil
		})
		tr := newTransport(t, b, throttle.Config{Cost: func(r *http.Request) throttle.Cost { return throttle.Cost{"tokens": int64(cost(r))} }})
		var all sync.WaitGroup
		for _, n := range []string{"500", "50", "50", "50"} {
			all.Go(func() { mustGet(t, tr, "http://h/x?tokens="+n).Body.Close() })
		}
		all.Wait()
		began := time.Now()
		mustGet(t, tr, "http://h/x?tokens=600").Body.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("600 of %d tokens waited for %v", left+600, took)
		}
	})
}
