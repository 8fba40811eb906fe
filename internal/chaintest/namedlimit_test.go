package chaintest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// named is a limit that only refusals state, by its name.
type named struct {
	mu sync.Mutex
	windowed
	short bool // it does not state its window
}

func (n *named) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	n.mu.Lock()
	now := time.Now()
	ok := n.draw(now)
	reset := n.back(now)
	n.mu.Unlock()
	time.Sleep(roundTrip)
	if ok {
		return stub(r)
	}
	window := fmt.Sprintf(";w=%d", int(n.per.Seconds()))
	if n.short {
		window = ""
	}
	return testnet.Answer(r, 429, http.Header{
		"Ratelimit-Policy": {fmt.Sprintf(`"default";q=%d%s`, n.size, window)},
		"Ratelimit":        {fmt.Sprintf(`"default";r=0;t=%d`, int(math.Ceil(reset.Seconds())))},
	}, nil), nil
}

// calls calls the server for so many windows, at random at load times its rate, and returns how
// many calls that were, and how many requests were served and refused meanwhile.
func (n *named) calls(t *testing.T, windows int, load float64) (calls, served, refused int) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(n, weir.Config{}))(t)
		start, last, dice := time.Now(), time.Duration(windows)*n.per, rand.New(rand.NewPCG(uint64(n.size), uint64(load*10)))
		var wg sync.WaitGroup
		for gap := float64(n.per) / float64(n.size) / load; time.Since(start) < last; calls++ {
			wg.Go(func() {
				if resp, err := testnet.Get(t, t.Context(), rt, "http://h/x"); err == nil && resp.StatusCode == 200 && time.Since(start) < last {
					n.mu.Lock()
					served++
					n.mu.Unlock()
				}
			})
			time.Sleep(time.Duration(dice.ExpFloat64() * gap))
		}
		refused = int(rt.Stats().Throttle.Hosts[0].Throttled)
		wg.Wait()
	})
	return calls, served, refused
}

// loaded calls named limits of all kinds, which state their window or not, for forty windows at
// .7 and at twice their rate. check is given how many requests can be served, and what happened.
func loaded(t *testing.T, short bool, check func(t *testing.T, most float64, served, refused int)) {
	const last = 40 // windows
	for _, kind := range []string{"first", "clock", "log"} {
		for _, size := range []struct {
			limit int
			per   time.Duration
		}{{5, 2 * time.Second}, {30, 4 * time.Second}, {60, 30 * time.Second}} {
			for _, load := range []float64{.7, 2} {
				t.Run(fmt.Sprint(kind, ", ", size.limit, " per ", size.per, ", load ", load), func(t *testing.T) {
					server := &named{windowed: windowed{kind: kind, size: size.limit, per: size.per}, short: short}
					calls, served, refused := server.calls(t, last, load)
					t.Logf("%d calls, %d served, %d refused", calls, served, refused)
					check(t, min(float64(calls), float64(last*size.limit)), served, refused)
				})
			}
		}
	}
}

// TestALimitThatOnlyRefusalsStateIsKept: once a refusal has said how many requests a window
// allows, so many are sent in each, and few are refused, though no other answer says how many
// are left. If it is one server of several that said so, more are served. So while requests wait,
// one is sent early from time to time, which is refused here.
func TestALimitThatOnlyRefusalsStateIsKept(t *testing.T) {
	loaded(t, false, func(t *testing.T, most float64, served, refused int) {
		if float64(served) < .85*most || refused > 10+served/3 { // 50 of 200 were seen in one of 60 runs
			t.Errorf("%d were served of %.0f that can be, and %d refused; want .85, and a third and ten", served, most, refused)
		}
	})
}

// TestAWindowThatNobodyStatesIsFilledStepByStep: if refusals state a limit and when it resets, but
// not how long its window is, nobody knows how much is there after a reset. Those who waited do
// not all go at once then, so few are refused.
func TestAWindowThatNobodyStatesIsFilledStepByStep(t *testing.T) {
	loaded(t, true, func(t *testing.T, most float64, served, refused int) {
		if float64(served) < .8*most || refused > 50+served {
			t.Errorf("%d were served of %.0f that can be, and %d refused; want .8, and as many and 50", served, most, refused)
		}
	})
}
