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
)

// weightedWindows is a server that counts the requests of each window by the clock, and those of
// the last window besides, by the share of it that lies within one window of now. It states how
// many are left and when the present window ends, in whole seconds.
type weightedWindows struct {
	limit  int
	window time.Duration
	trip   func() time.Duration
	state  func(h http.Header, s *weightedWindows, left int, end time.Time)

	mu        sync.Mutex
	end       time.Time // of the present window
	last, now int       // accepted in the last window and in the present one
	refused   int
}

func (s *weightedWindows) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, s.trip, s.decide)
}

func (s *weightedWindows) decide() (status int, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if end := now.Truncate(s.window).Add(s.window); end != s.end {
		if s.last = 0; end.Sub(s.end) == s.window {
			s.last = s.now
		}
		s.end, s.now = end, 0
	}
	count := func() float64 { return float64(s.last)*s.end.Sub(now).Seconds()/s.window.Seconds() + float64(s.now) }
	if status = http.StatusOK; count()+1 <= float64(s.limit) {
		s.now++
	} else {
		status = http.StatusTooManyRequests
		s.refused++
	}
	h = http.Header{"Date": {now.UTC().Format(http.TimeFormat)}}
	s.state(h, s, int(max(0, float64(s.limit)-count())), s.end)
	return status, h
}

// byDraft8 and byEpoch are two ways to state what is left.
func byDraft8(h http.Header, s *weightedWindows, left int, end time.Time) {
	h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, s.limit, int(s.window.Seconds())))
	h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, left, int(math.Ceil(time.Until(end).Seconds()))))
}

func byEpoch(h http.Header, s *weightedWindows, left int, end time.Time) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(end.Unix(), 10))
}

// A sliding counter gives the units of one window back evenly during the next one, although it
// states a reset as other servers do whose units all come back then. A client that waits for
// resets gets half of what there is. After three windows weir gets all of it.
func TestASlidingCounterIsUsedInFull(t *testing.T) {
	const windows, callers = 12, 40
	for _, dialect := range []struct {
		name  string
		state func(http.Header, *weightedWindows, int, time.Time)
	}{{"draft 8", byDraft8}, {"epoch", byEpoch}} {
		for seed, limit := range []int{8, 40, 200} {
			for _, window := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute} {
				s := &weightedWindows{limit: limit, window: window, trip: jitter(uint64(seed), 3*time.Millisecond), state: dialect.state}
				var lost int64
				var took time.Duration
				synctest.Test(t, func(t *testing.T) {
					rt := must(weir.New(s, weir.Config{}))(t)
					lost, took = load{callers: callers, calls: max(1, limit*windows/callers), wait: time.Hour}.round(t, rt)
				})
				t.Logf("%s: %d per %v: %.1f windows, %d refused", dialect.name, limit, window, took.Seconds()/window.Seconds(), s.refused)
				if most := (windows*2 + 5) * window / 2; lost > 0 || took > most || s.refused > 4 {
					t.Errorf("%s, %d per %v: %d calls of %d were lost and %d refused, in %v; want none lost, four refused, and %v at most", dialect.name, limit, window, lost, limit*windows, s.refused, took, most)
				}
			}
		}
	}
}
