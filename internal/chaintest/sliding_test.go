package chaintest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// sliding is a server that states in the words of draft 8 how many requests are left, and in
// whole seconds when the next one comes back.
type sliding struct {
	trip func() time.Duration // how long a request or an answer is on its way

	mu sync.Mutex
	windowed
	refused int
}

func (s *sliding) RoundTrip(r *http.Request) (*http.Response, error) {
	return travel(r, s.trip, s.decide)
}

// travel answers r as a server decides that is a trip away.
func travel(r *http.Request, trip func() time.Duration, decide func() (status int, h http.Header)) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), trip()); err != nil {
		return nil, err
	}
	status, h := decide()
	if err := testnet.Wait(r.Context(), trip()); err != nil {
		return nil, err
	}
	return testnet.Answer(r, status, h, http.NoBody), nil
}

func (s *sliding) decide() (status int, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	status, h = http.StatusOK, make(http.Header)
	if !s.draw(now) {
		status = http.StatusTooManyRequests
		s.refused++
	}
	next := strconv.Itoa(int(math.Ceil(s.back(now).Seconds())))
	h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, s.size, int(s.per.Seconds())))
	h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, s.size-len(s.drawn), next))
	if status != http.StatusOK {
		h.Set("Retry-After", next)
	}
	return status, h
}

// Units of a sliding log come back one by one, each a window after it was accepted. A client
// that has more to do uses each as it comes back, although answers overtake one another and
// resets are stated in whole seconds, and is hardly ever refused.
func TestASlidingLogIsUsedInFull(t *testing.T) {
	const windows, callers, length = 10, 50, 2 * time.Second
	ideal, seeds := length*(windows-1), testnet.Drawn(6, 1)
	for _, limit := range []int{40, 100, 250} {
		calls := limit * windows
		for _, trip := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			refused := 0
			for seed := range uint64(seeds) {
				s := &sliding{windowed: windowed{kind: "log", size: limit, per: length}, trip: jitter(seed, trip)}
				var lost int64
				var took time.Duration
				synctest.Test(t, func(t *testing.T) {
					rt := must(weir.New(s, weir.Config{}))(t)
					lost, took = load{callers: callers, calls: calls / callers, wait: time.Hour}.round(t, rt)
				})
				t.Logf("%v of %v, %d refused, %d lost", took, ideal, s.refused, lost)
				if lost > 0 || took > ideal*11/10 {
					t.Errorf("%d per %v, %v away, seed %d: %d calls were lost, the rest took %v, want at most 1.1 x %v", limit, length, trip, seed, lost, took, ideal)
				}
				refused += s.refused
			}
			t.Logf("%d per %v, %v away: %d refused", limit, length, trip, refused)
			most := seeds * calls / 1000
			testnet.Judge(t, refused <= most, "%d per %v, %v away: %d of %d requests were refused, want at most %d", limit, length, trip, refused, seeds*calls, most)
		}
	}
}

// jitter draws times between half of mean and two and a half times that, by seed.
func jitter(seed uint64, mean time.Duration) func() time.Duration {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return mean/2 + time.Duration(rnd.Int64N(int64(2*mean)))
	}
}
