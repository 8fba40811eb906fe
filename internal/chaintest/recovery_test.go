package chaintest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// An early is a host that refuses everybody soon after the first call, for a while.
type early struct {
	status        int
	every         time.Duration // between two calls
	up, down      time.Duration
	asked, failed atomic.Int64
	mu            sync.Mutex
	after         []time.Duration // when it was asked once it was back
	opened        atomic.Int64    // when its circuit was, after it went down
}

// run calls it until all that waited have gone, and that long once more.
func (h *early) run(t *testing.T, c weir.Config) {
	start := time.Now()
	c.Breaker.OnStateChange = func(x breaker.Change) {
		if x.To == breaker.Open {
			h.opened.CompareAndSwap(0, int64(time.Since(start)-h.up))
		}
	}
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(2 * time.Millisecond)
		at := time.Since(start) - h.up
		if at >= 0 && at < h.down {
			h.asked.Add(1)
			return testnet.Answer(r, h.status, nil, nil), nil
		}
		if at > 0 {
			h.mu.Lock()
			h.after = append(h.after, at-h.down)
			h.mu.Unlock()
		}
		return stub(r)
	}), c))(t)
	var wg sync.WaitGroup
	for time.Since(start) < h.up+5*h.down {
		wg.Go(func() {
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			if err == nil {
				resp.Body.Close()
			}
			if err != nil || resp.StatusCode != 200 {
				h.failed.Add(1)
			}
		})
		time.Sleep(h.every)
	}
	wg.Wait()
	slices.Sort(h.after)
}

// peak is by how much the host was asked more often than calls came, in twenty calls' time.
func (h *early) peak() float64 {
	most, w := 0, max(100*time.Millisecond, 20*h.every)
	for i, j := 0, 0; j < len(h.after); j++ {
		for h.after[j]-h.after[i] >= w {
			i++
		}
		most = max(most, j-i+1)
	}
	return float64(most) / float64(w/h.every)
}

// TestAHostThatIsBackIsNotOverrun: a host that refuses everybody soon after the first call
// may be a limiter, so its callers wait. If it was down, it is asked once for a hundred
// calls meanwhile. When it is back its callers come little faster than they came to wait.
func TestAHostThatIsBackIsNotOverrun(t *testing.T) {
	for _, h := range []*early{
		{status: 503, every: 5 * time.Millisecond, up: time.Second, down: 3500 * time.Millisecond},
		{status: 503, every: 5 * time.Millisecond, up: 3 * time.Second, down: 3 * time.Second},
		{status: 503, every: 5 * time.Millisecond, up: 4500 * time.Millisecond, down: 20 * time.Second},
		{status: 503, every: 2 * time.Millisecond, up: 300 * time.Millisecond, down: 10 * time.Second},
		{status: 503, every: 50 * time.Millisecond, up: 2 * time.Second, down: 3 * time.Second},
		{status: 503, every: 50 * time.Millisecond, up: 4 * time.Second, down: 30 * time.Second},
		{status: 429, every: 5 * time.Millisecond, up: 4500 * time.Millisecond, down: 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d, a call every %v, from %v on for %v", h.status, h.every, h.up, h.down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h.run(t, weir.Config{})
				calls, back, peak := int64(h.down/h.every), h.after[0], h.peak()
				t.Logf("asked %d times for %d calls, %d failed, back after %v, peak %.2f", h.asked.Load(), calls, h.failed.Load(), back, peak)
				soon := max(time.Second, 110*h.every)
				if h.status == 429 {
					soon = 15 * time.Second // it says that it is a limiter: guesses grow to 12 s, and a quarter more by chance
				}
				if n := h.failed.Load(); n > 0 || peak > 1.5 || h.asked.Load() > 10+calls/50 || back > soon {
					t.Errorf("asked %d times for %d calls, want one for 50; %d failed, want none; back after %v, want %v; asked %.2f times as often as calls came then, want 1.5",
						h.asked.Load(), calls, n, back, soon, peak)
				}
			})
		})
	}
}

// TestAHostThatStaysDownIsNoLimiter: a host that refuses everybody for longer than callers
// wait is down. Its circuit opens, and callers are refused at once.
func TestAHostThatStaysDownIsNoLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &early{status: 503, every: 20 * time.Millisecond, up: 2 * time.Second, down: time.Minute}
		h.run(t, weir.Config{Throttle: throttle.Config{MaxWait: 10 * time.Second}})
		opened := time.Duration(h.opened.Load())
		t.Logf("open after %v, asked %d times", opened, h.asked.Load())
		if opened < 10*time.Second || opened > 14*time.Second || h.asked.Load() > 120 {
			t.Errorf("open after %v, want 10 s to 14 s; asked %d times, want 120", opened, h.asked.Load())
		}
	})
}

// TestFewCallersAskSeldom: a host that refuses everybody soon after the first call, with few
// callers who each wait for an answer before they call again, is asked more and more seldom:
// some twenty times in five minutes. When it is back that is noticed after a third of the
// time for which it was down.
func TestFewCallersAskSeldom(t *testing.T) {
	for callers := 1; callers <= 4; callers++ {
		synctest.Test(t, func(t *testing.T) {
			const up, down = time.Second, 5 * time.Minute
			start := time.Now()
			var asked, failed atomic.Int64
			var back atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(10 * time.Millisecond)
				switch at := time.Since(start); {
				case at < up:
					return stub(r)
				case at < up+down:
					asked.Add(1)
					return testnet.Answer(r, 503, nil, nil), nil
				default:
					back.CompareAndSwap(0, int64(at-up-down))
					return stub(r)
				}
			}), weir.Config{Throttle: throttle.Config{MaxWait: 10 * time.Minute}}))(t)
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for time.Since(start) < up+2*down {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil || resp.StatusCode != 200 {
							failed.Add(1)
							time.Sleep(time.Second)
							continue
						}
						resp.Body.Close()
						time.Sleep(40 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			t.Logf("%d callers: asked %d times, back after %v, %d failed", callers, asked.Load(), time.Duration(back.Load()), failed.Load())
			if n := asked.Load(); n > 40 || time.Duration(back.Load()) > down/3 || failed.Load() > 0 {
				t.Errorf("%d callers: asked %d times in %v, want 40 at most; %d failed, want none; back after %v, want %v at most", callers, n, down, failed.Load(), time.Duration(back.Load()), down/3)
			}
		})
	}
}

// TestAHostThatIsBackServesAllWhoCome: a host refused everybody for a while, and most of its
// callers had no time to wait. Soon after it is back, all calls are sent to it again.
func TestAHostThatIsBackServesAllWhoCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if err := testnet.Wait(r.Context(), 20*time.Millisecond); err != nil {
				return nil, err
			}
			if at := time.Since(start); at > 3*time.Second && at < 23*time.Second {
				return testnet.Answer(r, 503, nil, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		var mu sync.Mutex
		var wg sync.WaitGroup
		came, served := make([]int, 60), make([]int, 60)
		for i := 0; time.Since(start) < 50*time.Second; i++ {
			at := int(time.Since(start).Seconds())
			came[at]++
			deadline := []time.Duration{time.Second, 2 * time.Second, time.Minute}[i%3]
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
				mu.Lock()
				defer mu.Unlock()
				if err == nil && resp.StatusCode == 200 {
					served[at]++
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
		t.Log(served)
		for at := 33; at < 50; at++ {
			if served[at] < came[at]*9/10 {
				t.Errorf("of %d calls that came %d s after the host was back, %d were served, want nine of ten", came[at], at-23, served[at])
			}
		}
	})
}
