package chaintest

import (
	"context"
	"math"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// hinting is a host that refuses, and says for how long, and what became of the calls to it,
// by the last segments of their paths.
type hinting struct {
	status  int                                                // of refusals
	refuses func(last string, now time.Duration) time.Duration // for how long; zero: it serves
	says    func(last string, seconds int, h http.Header)      // sets what refusals say in other words; nil: Retry-After

	mu                    sync.Mutex
	came, served, refused map[string]int
}

const roundTrip = 20 * time.Millisecond

var kindsOfCalls = []string{"daily", "users", "orders", "search"}

// kindsBelow are the paths of calls that are of each kind in turn.
func kindsBelow(base string) func(i int) string {
	return func(i int) string { return base + "/" + kindsOfCalls[i%len(kindsOfCalls)] }
}

// call calls the paths one by one for ten minutes. The callers wait for 30 s.
func (h *hinting) call(t *testing.T, every time.Duration, paths func(i int) string) {
	h.came, h.served, h.refused = map[string]int{}, map[string]int{}, map[string]int{}
	start := time.Now()
	client := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(roundTrip)
		last := path.Base(r.URL.Path)
		h.mu.Lock()
		defer h.mu.Unlock()
		if wait := h.refuses(last, time.Since(start)); wait > 0 {
			h.refused[last]++
			seconds := int(math.Ceil(wait.Seconds()))
			head := http.Header{"Retry-After": {strconv.Itoa(seconds)}}
			if h.says != nil {
				h.says(last, seconds, head)
			}
			return testnet.Answer(r, h.status, head, nil), nil
		}
		return testnet.Answer(r, 200, nil, nil), nil
	}), weir.Config{}))(t)
	callForTenMinutes(t, client, paths, func() time.Duration { return every }, func(to string, ok bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.came[path.Base(to)]++; ok {
			h.served[path.Base(to)]++
		}
	})
}

// callForTenMinutes calls the paths one by one, with gaps between them. The callers wait for 30 s.
// ended is told of each call whether it was served.
func callForTenMinutes(t *testing.T, rt http.RoundTripper, paths func(i int) string, gap func() time.Duration, ended func(path string, ok bool)) {
	start := time.Now()
	var wg sync.WaitGroup
	for i := 0; time.Since(start) < 10*time.Minute; i++ {
		to := paths(i)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			resp, err := rt.RoundTrip(get(t, "http://h"+to).WithContext(ctx))
			ended(to, err == nil && resp.StatusCode == 200)
		})
		time.Sleep(gap())
	}
	wg.Wait()
}

// A kind of request whose quota is spent for the day holds up no other, whatever its
// refusals say.
func TestASpentQuotaOfOneKindHoldsUpNoOther(t *testing.T) {
	for _, test := range []struct {
		from, wait time.Duration
		base       string
	}{
		{0, time.Minute, ""}, {0, 40000 * time.Second, "/v1"}, {20 * time.Second, 15 * time.Second, ""},
		{20 * time.Second, time.Minute, "/api/v2.1"}, {20 * time.Second, 40000 * time.Second, "/v1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			wait := test.wait
			h := hinting{status: 429, refuses: func(kind string, now time.Duration) time.Duration {
				if kind == "daily" && now > test.from {
					return wait
				}
				return 0
			}}
			h.call(t, 50*time.Millisecond, kindsBelow(test.base))
			for _, kind := range kindsOfCalls[1:] {
				if h.served[kind] != h.came[kind] {
					t.Errorf("%+v: %d of %d calls for %s were served, want all", test, h.served[kind], h.came[kind], kind)
				}
			}
			if most := 2 + int(10*time.Minute/min(wait, 5*time.Minute)); h.refused["daily"] > most {
				t.Errorf("%+v: %d were refused, want at most %d", test, h.refused["daily"], most)
			}
		})
	}
}

// A host that shuts out everybody for as long as it says is asked by one request of each other
// kind whether that is for all, and then ever more seldom: the first, the second and the
// fourth of six times.
func TestAHostThatShutsOutEverybodyIsAskedEverMoreSeldom(t *testing.T) {
	const shut, every = 60 * time.Second, 100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		waves, last := 0, time.Duration(0)
		h := hinting{status: 429, refuses: func(_ string, now time.Duration) time.Duration {
			left := every - now%every
			if left > shut {
				return 0
			}
			if now-last > 2*roundTrip { // sent after that was heard of
				waves++
			}
			last = now
			return (left + time.Second - 1).Truncate(time.Second)
		}}
		h.call(t, 50*time.Millisecond, kindsBelow(""))
		if most := 6 + 3*(len(kindsOfCalls)-1); waves > most { // one for each time it shut, and those that asked
			t.Errorf("%d waves of calls were refused, want at most %d: %v", waves, most, h.refused)
		}
	})
}
