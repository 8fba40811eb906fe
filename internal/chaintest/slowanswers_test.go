package chaintest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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

// TestAStatedLimitIsUsedAlthoughAnswersTakeLong: the host states its quota on all answers, refuses at
// once and works for seconds on what it accepts. It is asked for nine tenths of its rate for two
// minutes. Few are refused, and few wait until MaxWait where it is told when windows begin. If no
// more than the quota were under way, four of five would wait for so long, and half with 3 s.
func TestAStatedLimitIsUsedAlthoughAnswersTakeLong(t *testing.T) {
	const trip, size, per, span = 40 * time.Millisecond, 20, 2 * time.Second, 120
	for _, tt := range []struct {
		works time.Duration
		reset string // what it counts from
		lost  int    // of a hundred calls, at most
	}{
		{10 * time.Second, "the start of the work", 20}, {3 * time.Second, "the start of the work", 15},
		{10 * time.Second, "its end", 45}, {10 * time.Second, "", 65}, // when windows begin is guessed
	} {
		t.Run(fmt.Sprintf("%v, reset from %q", tt.works, tt.reset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var ends time.Time
				var left, lost, refused int
				dice := rand.New(rand.NewPCG(1, 9))
				exp := func() float64 { // of mean one
					mu.Lock()
					defer mu.Unlock()
					return dice.ExpFloat64()
				}
				state := func(h http.Header) {
					now := time.Now()
					h.Set("X-RateLimit-Limit", strconv.Itoa(size))
					h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
					if tt.reset != "" {
						h.Set("X-RateLimit-Reset", strconv.Itoa(int(math.Ceil(max(0, ends.Sub(now).Seconds())))))
					}
				}
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(trip / 2)
					works, h, status := time.Duration(float64(tt.works)*(.5+exp()/2)), http.Header{}, 200
					mu.Lock()
					if now := time.Now(); !now.Before(ends) {
						left, ends = size, now.Add(per)
					}
					if left--; left < 0 {
						left, works, status = 0, 0, 429
						refused++
					}
					state(h)
					mu.Unlock()
					time.Sleep(works)
					if tt.reset == "its end" && status == 200 {
						mu.Lock()
						state(h)
						mu.Unlock()
					}
					time.Sleep(trip / 2)
					return testnet.Answer(r, status, h, nil), nil
				}), weir.Config{}))(t)
				n := span * size / 2 * 9 / 10
				var wg sync.WaitGroup
				for range n {
					time.Sleep(time.Duration(exp() * float64(per) / size / .9))
					wg.Go(func() {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						mu.Lock()
						defer mu.Unlock()
						if err != nil || resp.StatusCode != 200 {
							lost++
						}
						if err == nil {
							resp.Body.Close()
						}
					})
				}
				wg.Wait()
				if t.Logf("%d of %d lost, %d refused", lost, n, refused); lost > n*tt.lost/100 || refused > n/10 {
					t.Errorf("%d of %d calls lost, %d refused", lost, n, refused)
				}
			})
		})
	}
}

// TestALimiterWhoseAnswersTakeLongLosesHardlyACall: the host refuses at once and works for seconds on
// what it accepts, as hosts of language models do. It is asked for somewhat more than its
// rate for half a minute. Hardly anybody waits until MaxWait to find out what it accepts: up
// to seven of ten would if each answer were awaited.
func TestALimiterWhoseAnswersTakeLongLosesHardlyACall(t *testing.T) {
	const trip, load, span = 40 * time.Millisecond, 1.2, 30
	for _, tt := range []struct {
		rate, burst float64
		works       time.Duration
		after       string // Retry-After
	}{
		{20, 20, 10 * time.Second, ""}, {20, 20, 10 * time.Second, "1"}, {5, 5, 10 * time.Second, ""}, {5, 5, 10 * time.Second, "1"},
		{20, 20, 2 * time.Second, ""},
	} {
		t.Run(fmt.Sprintf("%v per s of %v, Retry-After %q, %v", tt.rate, tt.burst, tt.after, tt.works), func(t *testing.T) {
			var lost atomic.Int64
			n := int(span * tt.rate)
			for seed := range uint64(3) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					dice := rand.New(rand.NewPCG(seed, 9))
					exp := func() time.Duration { // of mean a second
						mu.Lock()
						defer mu.Unlock()
						return time.Duration(dice.ExpFloat64() * 1e9)
					}
					server := limitReq(tt.rate, tt.burst, 0, nil)
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						time.Sleep(trip/2 + exp()/500)
						resp, err := server(r)
						if resp.StatusCode == 200 {
							time.Sleep((tt.works + time.Duration(tt.works.Seconds()*float64(exp()))) / 2)
						} else if resp.StatusCode = 429; tt.after != "" {
							resp.Header.Set("Retry-After", tt.after)
						}
						time.Sleep(trip / 2)
						return resp, err
					}), weir.Config{}))(t)
					var wg sync.WaitGroup
					for range n {
						time.Sleep(time.Duration(float64(exp()) / load / tt.rate))
						wg.Go(func() {
							resp, err := rt.RoundTrip(get(t, "http://h/"))
							if err != nil || resp.StatusCode != 200 {
								lost.Add(1)
							}
							if err == nil {
								resp.Body.Close()
							}
						})
					}
					wg.Wait()
				})
			}
			if t.Logf("%d of %d lost", lost.Load(), 3*n); lost.Load() > int64(3*n/20) {
				t.Errorf("%d of %d calls lost, want a twentieth", lost.Load(), 3*n)
			}
		})
	}
}

// TestWhatOnlyRefusalsStateIsUsedAlthoughAnswersTakeLong: the host refuses at once, says only then what
// it accepts, and works for seconds on that. It is asked for twice its rate for a minute. Most of the
// rate is used, and few are refused.
func TestWhatOnlyRefusalsStateIsUsedAlthoughAnswersTakeLong(t *testing.T) {
	const load, span, runs = 2, time.Minute, 4
	for _, tt := range []struct {
		rate        float64
		trip, works time.Duration
	}{
		{5, 40 * time.Millisecond, 5 * time.Second},
		{5, 500 * time.Millisecond, 5 * time.Second},
		{20, 500 * time.Millisecond, 10 * time.Second},
		{50, 250 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v per s, trip %v, %v", tt.rate, tt.trip, tt.works), func(t *testing.T) {
			accepted, refused := 0, 0
			for seed := range uint64(runs) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					dice, server := rand.New(rand.NewPCG(seed, 9)), limitReq(tt.rate, tt.rate, 0, nil)
					of := func(mean time.Duration) time.Duration { // from half of it to one and a half
						mu.Lock()
						defer mu.Unlock()
						return time.Duration(float64(mean) * (.5 + dice.Float64()))
					}
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						time.Sleep(of(tt.trip / 2))
						resp, err := server(r)
						if resp.StatusCode == 200 {
							mu.Lock()
							accepted++
							mu.Unlock()
							time.Sleep(of(tt.works))
						} else {
							mu.Lock()
							refused++
							mu.Unlock()
							resp.StatusCode = 429
							resp.Header = http.Header{"X-Ratelimit-Limit": {fmt.Sprint(tt.rate)}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}
						}
						time.Sleep(of(tt.trip / 2))
						return resp, err
					}), weir.Config{}))(t)
					ctx, cancel := context.WithTimeout(t.Context(), span)
					defer cancel()
					var wg sync.WaitGroup
					for ctx.Err() == nil {
						time.Sleep(of(time.Duration(float64(time.Second) / load / tt.rate)))
						wg.Go(func() {
							if resp, err := testnet.Get(t, ctx, rt, "http://h/"); err == nil {
								resp.Body.Close()
							}
						})
					}
					wg.Wait()
				})
			}
			most := runs * tt.rate * span.Seconds()
			if t.Logf("%d were accepted of %.0f that can be, %d refused", accepted, most, refused); float64(accepted) < .6*most || refused > accepted/8 {
				t.Errorf("%d were accepted of %.0f that can be, and %d refused; want .6, and an eighth", accepted, most, refused)
			}
		})
	}
}

// TestAHostThatWorksForLongRefusesFewAtFirst: as long as a host has answered nothing, requests that it
// did not refuse in time are taken to be accepted, and others are sent. They go one by one, so
// that a refusal keeps the rest here.
func TestAHostThatWorksForLongRefusesFewAtFirst(t *testing.T) {
	for trip, most := range map[time.Duration]int{5 * time.Millisecond: 2, 40 * time.Millisecond: 6} {
		for _, after := range []string{"", "60"} {
			synctest.Test(t, func(t *testing.T) {
				var accepted, refused atomic.Int64
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(trip / 2)
					if accepted.Add(1) <= 6 {
						time.Sleep(7 * time.Second)
						return testnet.Answer(r, 200, nil, nil), nil
					}
					refused.Add(1)
					time.Sleep(trip / 2)
					resp := testnet.Answer(r, 429, nil, nil)
					if after != "" {
						resp.Header.Set("Retry-After", after)
					}
					return resp, nil
				}), weir.Config{}))(t)
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				var wg sync.WaitGroup
				for range 60 {
					wg.Go(func() {
						if resp, err := testnet.Get(t, ctx, rt, "http://h/"); err == nil {
							resp.Body.Close()
						}
					})
				}
				wg.Wait()
				if n := refused.Load(); n > int64(most) {
					t.Errorf("%v away, Retry-After %q: %d of 60 were refused, want %d at most", trip, after, n, most)
				}
			})
		}
	}
}
