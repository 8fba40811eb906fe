package chaintest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// posts sends so many POSTs to rt at once and returns how many were not served.
func posts(t *testing.T, rt http.RoundTripper, n int) int64 {
	var lost atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r := must(http.NewRequest("POST", "http://h/", strings.NewReader("x")))(t)
			resp, err := rt.RoundTrip(r)
			if err != nil || resp.StatusCode != 200 {
				lost.Add(1)
			}
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return lost.Load()
}

// TestWhatACodeRefusesForQuotaIsRepeated: AWS refuses for a rate with a 400 or a 503 whose body
// names a code. Such a request was not executed, so it is repeated whatever its method.
func TestWhatACodeRefusesForQuotaIsRepeated(t *testing.T) {
	for _, test := range []struct {
		status     int
		kind, body string
	}{
		{400, "application/x-amz-json-1.1", `{"__type":"ThrottlingException","message":"Rate exceeded"}`},
		{400, "application/x-amz-json-1.0", `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"m"}`},
		{503, "text/xml;charset=UTF-8", `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></Response>`},
		{503, "application/xml", slowDown},
	} {
		t.Run(fmt.Sprint(test.status, test.body), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				limit := windowed{kind: "first", size: 20, per: time.Second}
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(roundTrip)
					mu.Lock()
					ok := limit.draw(time.Now())
					mu.Unlock()
					time.Sleep(roundTrip)
					if ok {
						return testnet.Answer(r, 200, nil, nil), nil
					}
					return testnet.Answer(r, test.status, http.Header{"Content-Type": {test.kind}}, testnet.NewBody(test.body)), nil
				}), weir.Config{}))(t)
				if lost := posts(t, rt, 100); lost > 0 {
					t.Errorf("%d of 100 POSTs were lost, want none", lost)
				}
			})
		})
	}
}

// TestA503ThatNamesNoCodeIsNoProof: a POST may have been executed if its 503 says no more, or
// states only that nothing is left, as it does if the last request of a window has failed.
func TestA503ThatNamesNoCodeIsNoProof(t *testing.T) {
	for _, header := range []http.Header{
		nil,
		{"Content-Type": {"application/json"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}},
		{"Retry-After": {"1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 30
			var sent atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(roundTrip)
				if sent.Add(1) <= calls/2 {
					return testnet.Answer(r, 200, nil, nil), nil
				}
				return testnet.Answer(r, 503, header.Clone(), nil), nil
			}), weir.Config{}))(t)
			if posts(t, rt, calls); sent.Load() > calls {
				t.Errorf("%v: %d POSTs were sent for %d calls", header, sent.Load(), calls)
			}
		})
	}
}

// TestWhatNoWaitHelpsHoldsUpNobody: a refusal because there is no allowance at all (OpenAI's
// insufficient_quota, a quota of the day) is returned at once, and tells nothing of others: they
// may be to another model, or another project.
func TestWhatNoWaitHelpsHoldsUpNobody(t *testing.T) {
	const spent = `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(roundTrip)
			if r.Header.Get("Model") == "" {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			return testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(spent)), nil
		}), weir.Config{}))(t)
		start := time.Now()
		for i := range 100 {
			r, want := get(t, "http://h/"), 200
			if i%5 == 0 {
				r.Header.Set("Model", "large")
				want = 429
			}
			resp := must(rt.RoundTrip(r))(t)
			if resp.StatusCode != want {
				t.Errorf("call %d: %d, want %d", i, resp.StatusCode, want)
			}
			resp.Body.Close()
		}
		if took := time.Since(start); took > 100*roundTrip+time.Second {
			t.Errorf("100 calls took %v, want %v", took, 100*roundTrip)
		}
	})
}
