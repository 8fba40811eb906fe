package chaintest

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestOneAnswerDoesNotCorroborateItself: what is said twice in one refusal, or in
// those of one burst, is said once. It is obeyed for no longer than MaxPause.
func TestOneAnswerDoesNotCorroborateItself(t *testing.T) {
	for _, burst := range []int64{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(26 * 365 * 24 * time.Hour)
			var n atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(50 * time.Millisecond)
				if n.Add(1) > burst {
					return testnet.Answer(r, 200, nil, nil), nil
				}
				return testnet.Answer(r, 429, http.Header{
					"Retry-After": {"86400"}, "X-Ratelimit-Limit": {"1000"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"86400"},
				}, nil), nil
			}), weir.Config{}))(t)
			var refused sync.WaitGroup
			for range burst {
				refused.Go(func() {
					if resp, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil {
						resp.Body.Close()
					}
				})
			}
			refused.Wait()
			lost, took := load{callers: 5, calls: 2, wait: 48 * time.Hour}.round(t, rt)
			if lost > 0 || took > 5*time.Minute+time.Second {
				t.Errorf("after %d refusals at once: %d lost, %v; want none, within MaxPause", burst, lost, took)
			}
		})
	}
}

// TestTwoAnswersCorroborateEachOther: when the one that asks after MaxPause is told
// the same instant, that instant is waited for.
func TestTwoAnswersCorroborateEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour)
		opens := time.Now().Add(3 * time.Hour)
		var refused atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Millisecond)
			left := time.Until(opens)
			if left <= 0 {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			refused.Add(1)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {strconv.Itoa(int(left.Seconds()) + 1)}}, nil), nil
		}), weir.Config{Retry: retry.Config{MaxDelay: 48 * time.Hour}}))(t)
		lost, took := load{callers: 5, calls: 2, wait: 48 * time.Hour}.round(t, rt)
		if n := refused.Load(); lost > 0 || n > 6 || took < 3*time.Hour || took > 3*time.Hour+time.Minute {
			t.Errorf("%d lost, %d refusals, %v; want none, one for each of five and one more, three hours", lost, n, took)
		}
	})
}

// TestWhatTwoAnswersSaidRefusesAtOnce: an instant that is corroborated is certain,
// so whoever cannot wait for it is told at once, also when MaxPause is nearly over.
func TestWhatTwoAnswersSaidRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour)
		opens := time.Now().Add(3 * time.Hour)
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Millisecond)
			left := time.Until(opens)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {strconv.Itoa(int(left.Seconds()) + 1)}}, nil), nil
		}), weir.Config{}))(t)
		for range 2 { // the second one asks when MaxPause is over
			if resp, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil {
				resp.Body.Close()
			}
			time.Sleep(5*time.Minute + 10*time.Second)
		}
		begin := time.Now()
		if _, err := rt.RoundTrip(get(t, "http://h/v1")); err == nil || time.Since(begin) > 0 {
			t.Errorf("told %v after %v, want a refusal at once", err, time.Since(begin))
		}
	})
}
