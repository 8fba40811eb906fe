package chaintest

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// bucketUntilFull is a bucket of 50 that fills in a minute, and states when it is full, as reset
// writes it.
func bucketUntilFull(dice *rand.Rand, prefix string, reset func(after time.Duration) string) testnet.Func {
	var mu sync.Mutex
	b := fullBucket(50)
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(roundTrip)
		mu.Lock()
		b.look()
		h, status := make(http.Header), 200
		if b.there >= 1 {
			b.there--
		} else {
			status = 429
			h.Set("Retry-After", retryAfter(b.wait(1)))
		}
		h.Set(prefix+"Limit", "50")
		h.Set(prefix+"Remaining", strconv.Itoa(int(b.there)))
		h.Set(prefix+"Reset", reset(time.Duration((50-b.there)/50*float64(time.Minute))))
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		takes := time.Duration((1 + 3*dice.Float64()) * float64(time.Second))
		mu.Unlock()
		time.Sleep(takes)
		return testnet.Answer(r, status, h, nil), nil
	}
}

// TestABucketThatSaysWhenItIsFullRefusesNobody: Anthropic states when all of a bucket is back. A
// burst that the bucket can serve in time is not refused because that is later. Of other hosts
// it is found out from how resets follow what is spent.
func TestABucketThatSaysWhenItIsFullRefusesNobody(t *testing.T) {
	const calls, callers = 95, 64
	for _, host := range []struct {
		url, prefix string
		reset       func(after time.Duration) string
	}{
		{"https://api.anthropic.com/v1/messages", "Anthropic-Ratelimit-Requests-", func(d time.Duration) string {
			return time.Now().Add(d).UTC().Format(time.RFC3339)
		}},
		{"https://api.example.com/v1/messages", "X-Ratelimit-", func(d time.Duration) string {
			return strconv.FormatInt(time.Now().Add(d).Unix(), 10)
		}},
		{"https://api.example.com/v1/messages", "Ratelimit-", func(d time.Duration) string {
			return strconv.Itoa(int(math.Ceil(d.Seconds())))
		}},
	} {
		for seed := range uint64(testnet.Drawn(10, 3)) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(26 * 365 * 24 * time.Hour)
				rt := must(weir.New(bucketUntilFull(rand.New(rand.NewPCG(seed, 3)), host.prefix, host.reset), weir.Config{}))(t)
				start := time.Now()
				var next, lost atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for next.Add(1) <= calls {
							resp, err := rt.RoundTrip(get(t, host.url))
							if err != nil || resp.StatusCode != 200 {
								lost.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); lost.Load() > 0 || took > 65*time.Second {
					t.Errorf("%s: %d of %d calls were lost in %v, want none in 54 s and a few", host.prefix, lost.Load(), calls, took)
				}
			})
		}
	}
}

// complexityUntilFull is a bucket of 2500 points that fills with 40 a second, of which requests
// need 20 to 60. It states when it is full, as Linear does, and refuses with a code in the body.
func complexityUntilFull(dice *rand.Rand) testnet.Func {
	var mu sync.Mutex
	there, seen := 2500., time.Now()
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		way, work := time.Duration(dice.IntN(10))*time.Millisecond, time.Duration(dice.IntN(120))*time.Millisecond
		mu.Unlock()
		time.Sleep(roundTrip/2 + way)
		mu.Lock()
		now := time.Now()
		there, seen = min(2500, there+now.Sub(seen).Seconds()*40), now
		need, status := 20+40*dice.Float64(), 200
		if there < need {
			status = 400
		} else {
			there -= need
		}
		h := http.Header{"Content-Type": {"application/json"}, "X-Complexity": {strconv.Itoa(int(need))}}
		h.Set("X-RateLimit-Complexity-Limit", "2500")
		h.Set("X-RateLimit-Complexity-Remaining", strconv.Itoa(int(there)))
		h.Set("X-RateLimit-Complexity-Reset", strconv.FormatInt(now.Add(time.Duration((2500-there)/40*float64(time.Second))).UnixMilli(), 10))
		h.Set("Date", now.UTC().Format(http.TimeFormat))
		mu.Unlock()
		if status == 400 {
			return testnet.Answer(r, status, h, testnet.NewBody(`{"errors":[{"message":"Rate limit exceeded","extensions":{"code":"RATELIMITED"}}]}`)), nil
		}
		time.Sleep(work)
		return testnet.Answer(r, status, h, nil), nil
	}
}

// TestABucketOfUnknownCostsThatSaysWhenItIsFullRefusesNobody: that resets are when a bucket is full
// is found out also if callers do not say what their requests cost.
func TestABucketOfUnknownCostsThatSaysWhenItIsFullRefusesNobody(t *testing.T) {
	const calls, callers = 120, 64
	for seed := range uint64(testnet.Drawn(20, 5)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(26 * 365 * 24 * time.Hour)
			rt := must(weir.New(complexityUntilFull(rand.New(rand.NewPCG(seed, 3))), weir.Config{}))(t)
			start := time.Now()
			var lost atomic.Int64
			inTurn(callers, calls, func(int) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://h/graphql", strings.NewReader(`{"query":"{ issues { id } }"}`))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := rt.RoundTrip(r)
				if err != nil || resp.StatusCode != 200 {
					lost.Add(1)
				}
			})
			if took := time.Since(start); lost.Load() > 0 || took > 80*time.Second {
				t.Errorf("seed %d: %d of %d calls were lost in %v, want none in 58 s and a few", seed, lost.Load(), calls, took)
			}
		})
	}
}

// TestABucketThatAnswersContradictIsObeyedOnce: what a server always says of a bucket, which would
// fill far more slowly than the server accepts, is waited for once: for MaxPause at most, and until
// a second call shows that the first did not get a unit that was there all the while.
func TestABucketThatAnswersContradictIsObeyedOnce(t *testing.T) {
	const once = 6*time.Minute + 10*time.Second
	for _, says := range []string{"0 24h", "0 P1D", "1 6m0s", "1 1h0m0s"} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left, full, _ := strings.Cut(says, " ")
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(roundTrip)
					h := http.Header{}
					dialects()[0].say(h, "40", left, full)
					return testnet.Answer(r, 200, h, nil), nil
				}), weir.Config{}))(t)
				var lost, late atomic.Int64
				var wg sync.WaitGroup
				for start := time.Now(); time.Since(start) < 3*once; time.Sleep(500 * time.Millisecond) {
					counts := time.Since(start) > once
					wg.Go(func() {
						n, took := (load{callers: 1, calls: 1}).round(t, rt)
						if lost.Add(n); counts && (n > 0 || took > roundTrip) {
							late.Add(1)
						}
					})
				}
				wg.Wait()
				if late.Load() > 0 {
					t.Errorf("%s of 40: %d calls were lost; after %v %d were lost or waited, want none", says, lost.Load(), once, late.Load())
				}
			})
		})
	}
}

// TestAWindowThatSaysWhenItIsFullIsRefusedSeldom: who writes resets as "6m0s" is taken for a bucket.
// If it is a window instead, that is found out from the first few of its answers.
func TestAWindowThatSaysWhenItIsFullIsRefusedSeldom(t *testing.T) {
	const calls, callers = 120, 7
	for _, limit := range []struct {
		size int
		per  time.Duration
	}{{4, 10 * time.Second}, {10, 3 * time.Second}, {30, time.Minute}} {
		for seed := range uint64(testnet.Drawn(10, 3)) {
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(seed, 7))
				var mu sync.Mutex
				phase := time.Duration(dice.Int64N(int64(limit.per)))
				start := time.Now().Add(-phase)
				window, used, refused := int64(0), 0, 0
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					way := time.Duration(dice.IntN(20)) * time.Millisecond
					mu.Unlock()
					time.Sleep(roundTrip/2 + way)
					mu.Lock()
					in := time.Since(start)
					if w := int64(in / limit.per); w != window {
						window, used = w, 0
					}
					h, status := make(http.Header), 200
					if used < limit.size {
						used++
					} else {
						status = 429
						refused++
					}
					h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(limit.size))
					h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(limit.size-used))
					h.Set("X-Ratelimit-Reset-Requests", (limit.per - in%limit.per).Round(time.Millisecond).String())
					mu.Unlock()
					time.Sleep(roundTrip / 2)
					return testnet.Answer(r, status, h, nil), nil
				}), weir.Config{Throttle: throttle.Config{MaxWait: time.Hour}}))(t)
				begun := time.Now()
				var lost atomic.Int64
				inTurn(callers, calls, func(int) {
					if resp, err := rt.RoundTrip(get(t, "http://h/")); err != nil || resp.StatusCode != 200 {
						lost.Add(1)
					}
				})
				ideal := time.Duration(calls/limit.size) * limit.per
				if took := time.Since(begun); lost.Load() > 0 || refused > 4 || took > ideal+ideal/20+time.Second {
					t.Errorf("%d per %v, seed %d: %d lost, %d refused, after %v, want none, at most 4, and %v at most", limit.size, limit.per, seed, lost.Load(), refused, took, ideal)
				}
			})
		}
	}
}
