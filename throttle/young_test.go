package throttle_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// policed is a server with a token bucket, behind a way that takes its time.
type policed struct {
	rate, size, tokens float64
	way                func(n int) time.Duration // of the n-th request, before the server sees it
	work               time.Duration

	mu      sync.Mutex
	seen    time.Time
	n       int
	refused int
	last    time.Time // accepted
}

func (s *policed) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.n++
	way := s.way(s.n)
	s.mu.Unlock()
	time.Sleep(way)
	status := s.decide()
	time.Sleep(s.work)
	return testnet.Answer(r, status, nil, http.NoBody), nil
}

func (s *policed) decide() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.seen.IsZero() {
		s.tokens = s.size
	} else {
		s.tokens = min(s.size, s.tokens+now.Sub(s.seen).Seconds()*s.rate)
	}
	s.seen = now
	if s.tokens < 1-1e-9 {
		s.refused++
		return 429
	}
	s.tokens--
	s.last = now
	return 200
}

// A bucket that was told is the server's own: a unit counts when the server
// sees it, which is later than its grant, and latest for the first.
func TestBucketWaitsForTheServersOwn(t *testing.T) {
	const calls = 300
	for _, c := range []struct {
		name string
		way  func(r *rand.Rand, n int) time.Duration
		work time.Duration
		most time.Duration // beyond the ideal
	}{
		{"connecting takes 80 ms, then all is quick", func(_ *rand.Rand, n int) time.Duration {
			if n <= 10 {
				return 80 * time.Millisecond
			}
			return time.Millisecond
		}, time.Millisecond, 100 * time.Millisecond},
		{"some take 50 ms longer", func(r *rand.Rand, n int) time.Duration {
			if r.IntN(20) == 0 {
				return 50 * time.Millisecond
			}
			return time.Millisecond
		}, time.Millisecond, 100 * time.Millisecond},
		{"answers take 3 s", func(*rand.Rand, int) time.Duration { return time.Millisecond }, 3 * time.Second, 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, 8))
					s := &policed{rate: 50, size: 10, work: c.work, way: func(n int) time.Duration { return c.way(r, n) }}
					tr := newTransport(t, s, throttle.Config{Default: throttle.MustParseBudget("50/s bucket 10"), DisableLearning: true})
					start := time.Now()
					var wg sync.WaitGroup
					for range calls {
						wg.Go(func() {
							if resp, err := get(t, t.Context(), tr, "http://a/"); err == nil {
								resp.Body.Close()
							}
						})
					}
					wg.Wait()
					ideal := time.Duration(calls-10) * time.Second / 50
					if took := s.last.Sub(start); s.refused > 0 || took > ideal+c.most {
						t.Errorf("%d refused, took %v, want none and at most %v", s.refused, took, ideal+c.most)
					}
				})
			}
		})
	}
}

// Answers that take long cost a bucket its rate for the time that what they are
// to is young, also if nobody looks at it meanwhile.
func TestSlowAnswersCostNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(slow(time.Minute))
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("6/m bucket 2"), DisableLearning: true})
		var wg sync.WaitGroup
		for _, after := range []time.Duration{0, 0, 0, 50 * time.Second, 50 * time.Second} {
			wg.Go(func() {
				time.Sleep(after)
				mustGet(t, tr, "http://a/").Body.Close()
			})
		}
		wg.Wait()
		young := time.Second - 1 // the engine began a nanosecond earlier
		sameTimes(t, b.Times(), 0, 0, young+10*time.Second, 50*time.Second, 50*time.Second)
	})
}
