package chaintest

import (
	"context"
	"errors"
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

// TestRequestsThatHangHoldUpNoOthers: a host answers quickly, but some of its requests hang
// until their callers' deadlines, as where one of ten shards is dead. Others go at once, and
// again some seconds after the host failed for a second, unless so many hang that the
// probes of its circuit may, too.
func TestRequestsThatHangHoldUpNoOthers(t *testing.T) {
	for _, hang := range []float64{.02, .1, .3} {
		for name, fails := range map[string]func(*http.Request) (*http.Response, error){
			"is well": stub,
			"500":     func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 500, nil, nil), nil },
			"503":     func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 503, nil, nil), nil },
			"no answer": func(*http.Request) (*http.Response, error) {
				return nil, errors.New("connection reset")
			},
		} {
			if hang > .2 && name != "is well" {
				continue
			}
			for _, deadline := range []time.Duration{20 * time.Second, time.Minute} {
				t.Run(fmt.Sprint(hang, " hang for ", deadline, ", then ", name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { hangsAndFails(t, hang, deadline, fails) })
				})
			}
		}
	}
}

// hangsAndFails calls a host 50 times a second, of whose requests a share hang, and which
// fails for the 31st second.
func hangsAndFails(t *testing.T, hang float64, deadline time.Duration, fails func(*http.Request) (*http.Response, error)) {
	const each = 20 * time.Millisecond
	start, dice := time.Now(), rand.New(rand.NewPCG(5, 6))
	var mu sync.Mutex
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		takes := each
		if dice.Float64() < hang {
			takes = time.Hour
		}
		mu.Unlock()
		sent := time.Since(start)
		if err := testnet.Wait(r.Context(), takes); err != nil {
			return nil, err
		}
		if sent > 30*time.Second && sent < 31*time.Second {
			return fails(r)
		}
		return stub(r)
	}), weir.Config{}))(t)
	var wg sync.WaitGroup
	served := make([]int, 60) // by the second in which they were answered
	for time.Since(start) < 60*time.Second {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
			mu.Lock()
			defer mu.Unlock()
			if at := int(time.Since(start).Seconds()); err == nil && resp.StatusCode == 200 && at < len(served) {
				served[at]++
			}
		})
		time.Sleep(each)
	}
	wg.Wait()
	want := (1 - hang) * float64(time.Second/each)
	for at := range served {
		if at == 0 || at >= 29 && at < 40 || at == 59 {
			continue
		}
		// Of three seconds, as they are random.
		if n := served[at-1] + served[at] + served[at+1]; float64(n) < .6*3*want {
			t.Errorf("from %d s on, %d calls are answered in three seconds, of about %.0f: %v", at-1, n, 3*want, served)
			return
		}
	}
}

// TestWhoHangsDoesNotAskForAll: after a pause one request asks whether it is over. If that
// one hangs, another asks soon, and the rest need not wait for its end.
func TestWhoHangsDoesNotAskForAll(t *testing.T) {
	for name, refusal := range map[string]http.Header{
		"a pause":                   {"Retry-After": {"2"}},
		"a pause that was guessed":  nil,
		"a window that starts anew": {"X-RateLimit-Limit": {"5"}, "X-RateLimit-Remaining": {"0"}, "X-RateLimit-Reset": {"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent, quick atomic.Int32
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					switch sent.Add(1) {
					case 1:
						return testnet.Answer(r, 429, refusal, nil), nil
					case 2:
						return nil, testnet.Wait(r.Context(), time.Minute)
					}
					return stub(r)
				}), weir.Config{}))(t)
				var wg sync.WaitGroup
				start := time.Now()
				for range 4 {
					wg.Go(func() {
						mustAnswer(t, rt, get(t, "http://h/"))
						if time.Since(start) < 15*time.Second {
							quick.Add(1)
						}
					})
					synctest.Wait()
				}
				wg.Wait()
				if n := quick.Load(); n != 3 {
					t.Errorf("%d quick calls were served while one hung, want 3", n)
				}
			})
		})
	}
}
