package chaintest

import (
	"fmt"
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
)

// TestLimitsOfOneNameStallNobody: a program that is new to a server calls several of its
// endpoints at once, and each has a limit of its own, stated by the name of all. While these are
// told apart some requests draw on a limit and others not, and none waits for those that are over.
func TestLimitsOfOneNameStallNobody(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls int
		path  func(dice *rand.Rand, i int) string
		of    func(path string) string
		limit counter
		ends  time.Duration // the first window
		most  time.Duration
	}{
		{"X, two endpoints with fifteen left until 50 s", 120, func(_ *rand.Rand, i int) string {
			return [...]string{"/2/tweets/search/recent", fmt.Sprintf("/2/users/%d/followers", 1000+i)}[i%2]
		}, func(path string) string { return path[strings.LastIndex(path, "/"):] },
			counter{size: 75, used: 60, per: 15 * time.Minute}, 50 * time.Second, 55 * time.Second},
		{"Discord, ten channels, half of the calls to one", 90, func(dice *rand.Rand, _ int) string {
			return fmt.Sprintf("/api/v10/channels/%d/messages", int64(1e18)+max(0, dice.Int64N(20)-10))
		}, func(path string) string { return path },
			counter{size: 5, per: 5 * time.Second}, 0, 80 * time.Second}, // chance decides how many go to the one: 72 s in one of ten runs
	} {
		for seed := range uint64(testnet.Drawn(12, 4)) {
			dice := rand.New(rand.NewPCG(seed, 11))
			s := &perName{of: func(r *http.Request) string { return test.of(r.URL.Path) }, delay: func() time.Duration {
				return 20*time.Millisecond + time.Duration(dice.ExpFloat64()*float64(80*time.Millisecond))
			}}
			shared(t, fmt.Sprint(test.name, " ", seed), s, func(t *testing.T, rt http.RoundTripper) {
				start := time.Now()
				s.make = func(string) *counter {
					c := test.limit
					c.ends = start.Add(test.ends)
					return &c
				}
				var next, lost atomic.Int64
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						for i := int(next.Add(1)); i <= test.calls; i = int(next.Add(1)) {
							s.mu.Lock()
							path := test.path(dice, i)
							s.mu.Unlock()
							if status, _ := visit(t, rt, path); status != 200 {
								lost.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); lost.Load() > 0 || took > test.most {
					t.Errorf("%d of %d calls were lost in %v, want none in %v", lost.Load(), test.calls, took, test.most)
				}
			})
		}
	}
}

// channels are limits of one name, one for each path, in windows from their first request. Every
// answer states them, as Discord's do.
type channels struct {
	mu      sync.Mutex
	size    int
	per     time.Duration
	trip    time.Duration
	of      map[string]*windowed
	refused int
}

func (s *channels) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(s.trip / 2)
	defer time.Sleep(s.trip / 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	w, now, status := s.of[r.URL.Path], time.Now(), 200
	if w == nil {
		w = &windowed{kind: "first", size: s.size, per: s.per}
		s.of[r.URL.Path] = w
	}
	h := http.Header{}
	if !w.draw(now) {
		status = 429
		s.refused++
		h.Set("Retry-After", retryAfter(w.back(now).Seconds()))
	}
	h.Set("X-RateLimit-Bucket", "abcd1234")
	h.Set("X-RateLimit-Limit", strconv.Itoa(w.size))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(w.size-len(w.drawn)))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", w.back(now).Seconds()))
	return testnet.Answer(r, status, h, nil), nil
}

// TestLimitsOfOneNameAreAllToldApart: when the limit of one path is told apart from that of others,
// those are not taken to share one any longer, though they did not contradict it. And those that
// were told apart are not one again because of a burst of refusals.
func TestLimitsOfOneNameAreAllToldApart(t *testing.T) {
	draws := testnet.Drawn(24, 12)
	var losing, lost, late, refused, calls int
	for seed := range uint64(draws) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 3))
			paths, load := 8+dice.IntN(4), .6+.3*dice.Float64()
			s := &channels{size: 2, per: time.Duration(5+5*dice.IntN(2)) * time.Second, of: map[string]*windowed{}}
			s.trip = time.Duration(20+dice.IntN(300)) * time.Millisecond
			rate, n, most := load*float64(paths*s.size)/s.per.Seconds(), 120, 5*s.per
			if seed%3 == 0 { // all at once
				rate, n, most = math.Inf(1), 60, time.Minute+s.per
			}
			rt := must(weir.New(s, weir.Config{}))(t)
			before := lost
			var wg sync.WaitGroup
			for range n {
				path := fmt.Sprintf("/api/v10/channels/%d/messages", int64(1e18)+dice.Int64N(int64(paths)))
				wg.Go(func() {
					status, took := visit(t, rt, path)
					s.mu.Lock()
					defer s.mu.Unlock()
					if calls++; status != 200 {
						lost++
					} else if took > most {
						late++
					}
				})
				time.Sleep(time.Duration(dice.ExpFloat64() / rate * float64(time.Second)))
			}
			wg.Wait()
			if refused += s.refused; lost > before {
				losing++
			}
		})
	}
	t.Logf("of %d calls %d were lost, %d came late, %d were refused", calls, lost, late, refused)
	if losing > 1 { // in one of fifty runs a server is not understood in time
		t.Errorf("%d of %d calls were lost, by %d servers of %d, want none, or by one", lost, calls, losing, draws)
	}
	testnet.Judge(t, late <= calls/50, "%d of %d calls were late, want one in 50 at most", late, calls)
}
