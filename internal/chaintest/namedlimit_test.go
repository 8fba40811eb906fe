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

// named is a limit of so many requests in a window per, which only refusals state, by its name.
// It counts in windows that begin with the first request, or by the clock, or in a log.
type named struct {
	limit int
	per   time.Duration
	kind  string

	mu    sync.Mutex
	first time.Time   // of the window
	log   []time.Time // when those were accepted that count
}

// draw reports whether a request is accepted, and otherwise after which time one will be.
func (n *named) draw() (ok bool, reset time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	begins := now.Add(-n.per)
	switch {
	case n.kind == "clock":
		begins = now.Truncate(n.per).Add(-1)
	case n.kind == "first" && now.Sub(n.first) < n.per:
		begins = n.first.Add(-1)
	}
	for len(n.log) > 0 && !n.log[0].After(begins) {
		n.log = n.log[1:]
	}
	if len(n.log) == 0 {
		n.first = now
	}
	if len(n.log) < n.limit {
		n.log = append(n.log, now)
		return true, 0
	}
	if n.kind == "log" {
		begins = n.log[0].Add(-1)
	} else if n.kind == "first" {
		begins = n.first
	}
	return false, begins.Add(n.per).Sub(now)
}

func (n *named) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	ok, reset := n.draw()
	time.Sleep(roundTrip)
	if ok {
		return stub(r)
	}
	return testnet.Answer(r, 429, http.Header{
		"Ratelimit-Policy": {fmt.Sprintf(`"default";q=%d;w=%d`, n.limit, int(n.per.Seconds()))},
		"Ratelimit":        {fmt.Sprintf(`"default";r=0;t=%d`, int(math.Ceil(reset.Seconds())))},
	}, nil), nil
}

// TestALimitThatOnlyRefusalsStateIsKept: once a refusal has said how many requests a window
// allows, so many are sent in each, and few are refused, though no other answer says how many
// are left.
func TestALimitThatOnlyRefusalsStateIsKept(t *testing.T) {
	const last = 40 // windows
	for _, kind := range []string{"first", "clock", "log"} {
		for _, size := range []struct {
			limit int
			per   time.Duration
		}{{5, 2 * time.Second}, {30, 4 * time.Second}, {60, 30 * time.Second}} {
			for _, load := range []float64{.7, 2} {
				t.Run(fmt.Sprint(kind, ", ", size.limit, " per ", size.per, ", load ", load), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						server := &named{limit: size.limit, per: size.per, kind: kind}
						rt := must(weir.New(server, weir.Config{}))(t)
						start, dice := time.Now(), rand.New(rand.NewPCG(uint64(size.limit), uint64(load*10)))
						var wg sync.WaitGroup
						calls, served := 0, 0
						for gap := float64(size.per) / float64(size.limit) / load; time.Since(start) < last*size.per; calls++ {
							wg.Go(func() {
								if resp, err := testnet.Get(t, t.Context(), rt, "http://h/x"); err == nil && resp.StatusCode == 200 && time.Since(start) < last*size.per {
									server.mu.Lock()
									served++
									server.mu.Unlock()
								}
							})
							time.Sleep(time.Duration(dice.ExpFloat64() * gap))
						}
						server.mu.Lock()
						refused := rt.Stats().Throttle.Hosts[0].Throttled
						most := min(float64(calls), float64(last*size.limit))
						if t.Logf("%d calls, %d served, %d refused", calls, served, refused); float64(served) < .85*most || refused > int64(10+served/10) {
							t.Errorf("%d were served of %.0f that can be, and %d refused; want .85, and a tenth and ten", served, most, refused)
						}
						server.mu.Unlock()
						wg.Wait()
					})
				})
			}
		}
	}
}
