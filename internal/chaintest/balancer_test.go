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

// TestLimitsOfServersThatCountAloneAreUsedInFull: where each of several servers behind a balancer
// counts for itself, and only refusals state a limit, that is the limit of one server. Callers get
// what all of them take, whatever the limit is called, and how many kinds of request there are.
func TestLimitsOfServersThatCountAloneAreUsedInFull(t *testing.T) {
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
