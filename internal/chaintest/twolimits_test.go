package chaintest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// oneInAnother is two limiters, one around the other, that write the same headers, as those of
// go-chi/httprate do: good answers state the inner limit, and refusals the one that refused.
type oneInAnother struct {
	mu           sync.Mutex
	outer, inner windowed
	refused      int
}

func (n *oneInAnother) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, func() time.Duration { return roundTrip }, n.decide)
}

func (n *oneInAnother) decide() (status int, h http.Header) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for _, w := range []*windowed{&n.outer, &n.inner} {
		if w.draw(now) {
			continue
		}
		n.refused++
		h = states(w, now, 0)
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(w.back(now).Seconds()))))
		return http.StatusTooManyRequests, h
	}
	return http.StatusOK, states(&n.inner, now, n.inner.size-len(n.inner.drawn))
}

// states is how much of w is left, and when all of it is back.
func states(w *windowed, now time.Time, left int) http.Header {
	reset := now
	if len(w.drawn) > 0 {
		reset = now.Add(w.back(now))
	}
	return http.Header{
		"X-Ratelimit-Limit":     {strconv.Itoa(w.size)},
		"X-Ratelimit-Remaining": {strconv.Itoa(left)},
		"X-Ratelimit-Reset":     {strconv.FormatInt(int64(math.Ceil(float64(reset.UnixMilli())/1000)), 10)},
	}
}

// TestALimitBesideTheStatedOneIsFound: good answers state one limit, and refusals sometimes another
// that is spent sooner. Those who waited for its reset do not all go at once each time.
func TestALimitBesideTheStatedOneIsFound(t *testing.T) {
	const calls = 300
	for _, kind := range []string{"clock", "log"} {
		for _, callers := range []int{8, 32} {
			t.Run(fmt.Sprint(kind, ", ", callers, " callers"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &oneInAnother{outer: windowed{kind: kind, size: 10, per: time.Second}, inner: windowed{kind: kind, size: 60, per: 10 * time.Second}}
					rt := must(weir.New(server, weir.Config{}))(t)
					start := time.Now()
					lost := lostOf(t, rt, calls, callers)
					took := time.Since(start)
					if t.Logf("%v, %d refused, %d lost", took, server.refused, lost); lost > 0 || server.refused > calls/2 || took > 65*time.Second {
						t.Errorf("%d calls took %v, %d were refused and %d lost; want 65 s, %d and none", calls, took, server.refused, lost, calls/2)
					}
				})
			})
		}
	}
}

// TestALimitUnderTheStatedOnesNameIsFound: good answers state a limit of which much is left, and
// refusals for another one say that nothing is left of it, as Jira's do for bursts.
func TestALimitUnderTheStatedOnesNameIsFound(t *testing.T) {
	const calls, hour = 300, 3000
	for _, kind := range []string{"clock", "log"} {
		for _, callers := range []int{8, 32, 64} {
			t.Run(fmt.Sprint(kind, ", ", callers, " callers"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					burst, used, refused := windowed{kind: kind, size: 10, per: time.Second}, 0, 0
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						time.Sleep(roundTrip)
						defer time.Sleep(roundTrip)
						mu.Lock()
						defer mu.Unlock()
						h := http.Header{"X-Ratelimit-Limit": {strconv.Itoa(hour)}, "X-Ratelimit-Remaining": {"0"}}
						if now := time.Now(); !burst.draw(now) {
							refused++
							h.Set("X-Ratelimit-Reset", now.UTC().Format("2006-01-02T15:04Z")) // past, as it has no seconds
							h.Set("Retry-After", strconv.Itoa(int(math.Ceil(burst.back(now).Seconds()))))
							return testnet.Answer(r, 429, h, nil), nil
						}
						used++
						h.Set("X-Ratelimit-Remaining", strconv.Itoa(hour-used))
						return testnet.Answer(r, 200, h, nil), nil
					}), weir.Config{}))(t)
					start := time.Now()
					lost := lostOf(t, rt, calls, callers)
					took := time.Since(start)
					if t.Logf("%v, %d refused, %d lost", took, refused, lost); lost > 0 || refused > calls/2 || took > 45*time.Second {
						t.Errorf("%d calls took %v, %d were refused and %d lost; want 45 s, %d and none", calls, took, refused, lost, calls/2)
					}
				})
			})
		}
	}
}
