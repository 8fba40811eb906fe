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
	"github.com/weirhttp/weir/throttle"
)

// refilled is a token bucket that says what is left, and when it will be full.
type refilled struct {
	rate, size float64
	stamp      bool // the reset is a time; else seconds

	mu      sync.Mutex
	level   float64
	seen    time.Time
	refused int
}

func (s *refilled) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, func() time.Duration { return 20 * time.Millisecond }, s.decide)
}

func (s *refilled) decide() (status int, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.size, s.level+now.Sub(s.seen).Seconds()*s.rate)
	s.seen, status, h = now, http.StatusOK, make(http.Header)
	if s.level >= 1-1e-9 {
		s.level--
	} else {
		status = http.StatusTooManyRequests
		s.refused++
		h.Set("Retry-After", "1")
	}
	full := time.Duration((s.size - s.level) / s.rate * float64(time.Second))
	reset := strconv.Itoa(int(math.Ceil(full.Seconds())))
	if s.stamp {
		reset = strconv.FormatInt(int64(math.Ceil(float64(now.Add(full).UnixNano())/1e9)), 10)
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(int(s.size)))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(int(s.level)))
	h.Set("X-RateLimit-Reset", reset)
	return status, h
}

// What flows back into a bucket as fast as it is spent is no contradiction of what the
// bucket said was left: so the many who wait for it are not let go at once. One that
// holds four seconds' units looks like a window until it was refused at its reset.
func TestAStatedBucketIsNotOverrunAsItRefills(t *testing.T) {
	for _, rate := range []float64{5, 20, 50, 200} {
		for share, most := range map[float64]int{.5: 50, 1: 50, 4: 2} { // the bucket holds so many seconds' units; one call in so many may be refused
			for _, stamp := range []bool{false, true} {
				s := &refilled{rate: rate, size: math.Ceil(rate * share), stamp: stamp}
				calls := int(s.size + 15*rate)
				t.Run(fmt.Sprintf("%v/s of %v, stamp %t", rate, s.size, stamp), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s.level, s.seen = s.size, time.Now()
						rt, err := weir.New(s, weir.Config{Throttle: throttle.Config{MaxWait: time.Hour}})
						if err != nil {
							t.Fatal(err)
						}
						start, failed := time.Now(), 0
						var mu sync.Mutex
						together(calls, func() {
							r, err := http.NewRequestWithContext(t.Context(), "GET", "http://h/x", nil)
							if err != nil {
								t.Error(err)
								return
							}
							resp, err := rt.RoundTrip(r)
							if err == nil {
								resp.Body.Close()
							}
							if err != nil || resp.StatusCode != http.StatusOK {
								mu.Lock()
								failed++
								mu.Unlock()
							}
						})
						t.Logf("%d calls in %v, %d refused", calls, time.Since(start), s.refused)
						if failed > 0 || s.refused > calls/most {
							t.Errorf("%d of %d calls failed, %d were refused, want at most one in %d", failed, calls, s.refused, most)
						}
					})
				})
			}
		}
	}
}

// together makes that many calls at once.
func together(calls int, call func()) {
	var wg sync.WaitGroup
	for range calls {
		wg.Go(call)
	}
	wg.Wait()
}

// stepped is a bucket that gains units all at once, now and then, and states that time as its window.
type stepped struct {
	size, gains int
	every       time.Duration
	phase       time.Duration

	mu      sync.Mutex
	used    int
	gained  time.Time
	refused int
}

func (s *stepped) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, func() time.Duration { return time.Millisecond }, s.decide)
}

func (s *stepped) decide() (status int, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.gained.IsZero() {
		s.gained = now.Add(-s.phase)
	}
	for now.Sub(s.gained) >= s.every {
		s.gained, s.used = s.gained.Add(s.every), max(0, s.used-s.gains)
	}
	if status, h = http.StatusOK, make(http.Header); s.used < s.size {
		s.used++
	} else {
		status = http.StatusTooManyRequests
		s.refused++
	}
	h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, s.size, int(s.every.Seconds())))
	h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, s.size-s.used, int(math.Ceil(s.gained.Add(s.every).Sub(now).Seconds()))))
	return status, h
}

// A server can state a window in which fewer units come back than it says. Who takes it for a bucket of
// that rate is refused every other time, always a little before the next unit comes, and finds that out.
func TestABucketThatGainsInStepsIsNotAskedBetween(t *testing.T) {
	const calls, callers = 60, 4
	for _, limit := range []struct {
		size, gains int
		every       time.Duration
	}{{2, 1, 3 * time.Second}, {3, 1, 5 * time.Second}, {4, 2, 10 * time.Second}, {8, 2, 2 * time.Second}} {
		for _, phase := range []time.Duration{0, 400 * time.Millisecond, 1300 * time.Millisecond} {
			s := &stepped{size: limit.size, gains: limit.gains, every: limit.every, phase: phase}
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(s, weir.Config{Throttle: throttle.Config{MaxWait: time.Hour}}))(t)
				lost, took := load{callers: callers, calls: calls / callers, wait: time.Hour}.round(t, rt)
				ideal := time.Duration((calls-s.size)/s.gains) * s.every
				if lost > 0 || s.refused > calls/3 || took > ideal*21/20 {
					t.Errorf("%d, and %d more every %v: %d of %d lost, %d refused, after %v, want none, a third, and %v at most", s.size, s.gains, s.every, lost, calls, s.refused, took, ideal)
				}
			})
		}
	}
}
