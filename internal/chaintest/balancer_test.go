package chaintest

import (
	"context"
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

// Where each of several servers behind a balancer counts for itself, and only refusals
// state a limit, that is the limit of one server. Callers get what all of them take.
func TestLimitsOfServersThatCountAloneAreUsedInFull(t *testing.T) {
	for _, servers := range []int{2, 4, 8} {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				const demand, seconds = 20, 60
				size := demand * 6 / 5 / servers // a second, so five sixths of what all take are asked for
				var mu sync.Mutex
				turn, used, second := 0, make([]int, servers), int64(0)
				client := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(20 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					if now := time.Now().Unix(); now != second {
						second = now
						clear(used)
					}
					turn = (turn + 1) % servers
					if used[turn] < size {
						used[turn]++
						return testnet.Answer(r, 200, nil, nil), nil
					}
					h := http.Header{"X-Ratelimit-Limit": {strconv.Itoa(size)}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}
					if after {
						h.Set("Retry-After", "1")
					}
					return testnet.Answer(r, 429, h, nil), nil
				}), weir.Config{}))(t)
				random := rand.New(rand.NewPCG(uint64(servers), 31))
				came, lost := 0, map[string]int{}
				var wg sync.WaitGroup
				for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); {
					came++
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						resp, err := client.RoundTrip(get(t, "http://h/v1").WithContext(ctx))
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							lost[fmt.Sprintf("%T", err)]++
						} else if resp.StatusCode != 200 {
							lost[strconv.Itoa(resp.StatusCode)]++
						}
					})
					time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second/demand)))
				}
				wg.Wait()
				if len(lost) > 0 {
					t.Errorf("%d servers, Retry-After %t: of %d calls these were lost: %v; want none", servers, after, came, lost)
				}
			})
		}
	}
}

// counters are servers behind a balancer, each of which counts for itself, at random. Only refusals
// state their limit: that of one of them, by its name or without.
type counters struct {
	mu    sync.Mutex
	of    []windowed
	dice  *rand.Rand
	named bool
	after bool   // refusals say Retry-After, too
	free  string // a path that they do not limit
}

func (c *counters) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	c.mu.Lock()
	now, w := time.Now(), &c.of[c.dice.IntN(len(c.of))]
	ok := r.URL.Path == c.free || w.draw(now)
	reset := 0
	if !ok {
		reset = int(math.Ceil(w.back(now).Seconds()))
	}
	c.mu.Unlock()
	time.Sleep(roundTrip)
	if ok {
		return stub(r)
	}
	h := http.Header{}
	if c.named {
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, w.size, int(w.per.Seconds())))
		h.Set("RateLimit", fmt.Sprintf(`"default";r=0;t=%d`, reset))
	} else {
		h.Set("X-RateLimit-Limit", strconv.Itoa(w.size))
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
	}
	if c.after {
		h.Set("Retry-After", strconv.Itoa(reset))
	}
	return testnet.Answer(r, 429, h, nil), nil
}

// called are how calls to one path ended, each of which might take 20 s.
type called struct{ calls, lost, late int } // late: after more than a second

// call calls the servers for a minute at load times the rate of all of them. One call in eight
// is to other.
func (c *counters) call(t *testing.T, load float64, other string) (main, others called) {
	synctest.Test(t, func(t *testing.T) {
		rt, dice := must(weir.New(c, weir.Config{}))(t), rand.New(rand.NewPCG(uint64(c.of[0].size), 20))
		gap := float64(c.of[0].per) / float64(c.of[0].size*len(c.of)) / load
		var wg sync.WaitGroup
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(time.Duration(dice.ExpFloat64() * gap)) {
			path, to := "/a", &main
			if dice.IntN(8) == 0 {
				path, to = other, &others
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				from := time.Now()
				resp, err := testnet.Get(t, ctx, rt, "http://h"+path)
				c.mu.Lock()
				defer c.mu.Unlock()
				to.calls++
				if err != nil || resp.StatusCode != 200 {
					to.lost++
				} else if time.Since(from) > time.Second {
					to.late++
				}
			})
		}
		wg.Wait()
	})
	return main, others
}

// countersOf are three servers with a drawn limit each.
func countersOf(seed uint64) *counters {
	w := windowed{
		kind: []string{"first", "clock", "log"}[seed%3],
		size: []int{3, 10, 40}[seed/3%3],
		per:  []time.Duration{2 * time.Second, 10 * time.Second}[seed%2],
	}
	return &counters{of: []windowed{w, w, w}, dice: rand.New(rand.NewPCG(seed, 1)), named: seed%4 > 0, after: seed/4%2 > 0}
}

// TestServersThatCountAloneAreUsedInFullWhateverTheyName: so it is whatever the limit is called, and
// how many kinds of request there are.
func TestServersThatCountAloneAreUsedInFullWhateverTheyName(t *testing.T) {
	for _, other := range []string{"/a", "/b"} {
		all, lost := 0, 0
		for seed := range uint64(12) {
			main, others := countersOf(seed).call(t, .7, other)
			all, lost = all+main.calls+others.calls, lost+main.lost+others.lost
		}
		t.Logf("with %s: %d of %d calls were lost", other, lost, all)
		if lost > all/50 {
			t.Errorf("with %s: %d of %d calls were lost, want one in 50", other, lost, all)
		}
	}
}

// TestALimitWithANameHoldsUpNoOther: requests that such a limit does not bind go at once, though it
// is not known what all servers take.
func TestALimitWithANameHoldsUpNoOther(t *testing.T) {
	for _, load := range []float64{.7, 2} {
		var all called
		for seed := range uint64(12) {
			c := countersOf(seed)
			c.named, c.free = true, "/b"
			_, others := c.call(t, load, c.free)
			all = called{all.calls + others.calls, all.lost + others.lost, all.late + others.late}
		}
		t.Logf("load %v: %+v", load, all)
		if all.lost > 0 || all.late > all.calls/200 {
			t.Errorf("load %v: %d of %d calls that nothing limits were lost, and %d came late, want none, and one in 200", load, all.lost, all.calls, all.late)
		}
	}
}
