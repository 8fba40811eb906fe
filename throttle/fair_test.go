package throttle_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"

	"github.com/weirhttp/weir/throttle"
	"pgregory.net/rapid"
)

type laneKey struct{}

// line lets waiters join one after the other and returns the order in which
// they were granted, by name.
type contest struct {
	l     *throttle.Limiter
	mu    sync.Mutex
	order []string
	wg    sync.WaitGroup
}

func newContest(t *testing.T, budget string) *contest {
	l, err := throttle.NewLimiter(throttle.LimiterConfig{
		Default: throttle.MustParseBudget(budget), MaxWait: 1000 * time.Hour,
		Lane: func(ctx context.Context) string { s, _ := ctx.Value(laneKey{}).(string); return s },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !l.Try("k", nil).Allowed {
		t.Fatal("not idle")
	}
	return &contest{l: l}
}

func (c *contest) join(ctx context.Context, name string, cost int64) {
	c.wg.Go(func() {
		if _, err := c.l.Take(ctx, "k", throttle.Cost{requests: cost}); err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.order = append(c.order, name)
		}
	})
	synctest.Wait()
}

func TestLanesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t, "1/s burst 1")
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
			c.join(context.WithValue(t.Context(), laneKey{}, name[:1]), name, 1)
		}
		c.wg.Wait()
		if got, want := strings.Join(c.order, " "), "a1 b1 c1 a2 b2 a3 a4"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestHigherClassesGoFirstAndLowerOnesGetTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t, "1/s burst 1")
		for i := range 2 {
			c.join(throttle.WithPriority(t.Context(), -1), fmt.Sprint("low", i), 1)
		}
		for i := range 16 {
			c.join(throttle.WithPriority(t.Context(), 1), fmt.Sprint("h", i), 1)
		}
		c.join(t.Context(), "normal", 1)
		c.wg.Wait()
		want := "h0 h1 h2 h3 h4 h5 h6 low0 h7 h8 h9 h10 h11 h12 h13 low1 h14 h15 normal"
		if got := strings.Join(c.order, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestOrderOfArrival: whatever the costs and whoever gives up, those that stay
// go in the order in which they came.
func TestOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		costs := rapid.SliceOfN(rapid.Int64Range(1, 8), 1, 25).Draw(rt, "costs")
		gone := rapid.SliceOfN(rapid.Bool(), 25, 25).Draw(rt, "gone")
		after := rapid.SliceOfN(rapid.IntRange(0, 5000), 25, 25).Draw(rt, "after")
		var order []int
		at := make(map[int]time.Time)
		synctest.Test(t, func(t *testing.T) {
			c := newContest(t, "8/s burst 4, 100/m")
			for i, cost := range costs {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.wg.Go(func() {
					if _, err := c.l.Take(ctx, "k", throttle.Cost{requests: cost}); err == nil {
						c.mu.Lock()
						defer c.mu.Unlock()
						at[i] = time.Now()
						order = append(order, i)
					}
				})
				synctest.Wait()
				if gone[i] {
					time.AfterFunc(max(1, time.Duration(after[i])*time.Millisecond), cancel)
				}
			}
			c.wg.Wait()
		})
		slices.Sort(order)
		for k := 1; k < len(order); k++ {
			if i, j := order[k-1], order[k]; at[i].After(at[j]) {
				rt.Fatalf("%d went at %v, before %d at %v", j, at[j], i, at[i])
			}
		}
	})
}

// TestGroupsDoNotDeadlock: waiters of several lanes and classes that need
// several accounts all go in the end.
func TestGroupsDoNotDeadlock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type part struct {
			lane, class int
			x, y, z     int64
			sleep       int
		}
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) part {
			return part{
				rapid.IntRange(0, 3).Draw(t, "lane"), rapid.IntRange(0, 2).Draw(t, "class"),
				rapid.Int64Range(0, 3).Draw(t, "x"), rapid.Int64Range(0, 3).Draw(t, "y"), rapid.Int64Range(0, 3).Draw(t, "z"),
				rapid.IntRange(0, 3).Draw(t, "sleep"),
			}
		}), 1, 40).Draw(rt, "parts")
		left := 0
		synctest.Test(t, func(t *testing.T) {
			c := newContest(t, "1000/s, 3 x/s burst 3, 4 y/3s burst 3, 3 z/10s burst 3")
			for i, p := range parts {
				time.Sleep(time.Duration(p.sleep) * 300 * time.Millisecond)
				c.wg.Go(func() {
					ctx := throttle.WithPriority(context.WithValue(t.Context(), laneKey{}, fmt.Sprint(p.lane)), p.class)
					if _, err := c.l.Take(ctx, "k", throttle.Cost{"x": p.x, "y": p.y, "z": p.z}); err == nil {
						c.mu.Lock()
						defer c.mu.Unlock()
						c.order = append(c.order, fmt.Sprint(i))
					}
				})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			left = c.l.Stats().Keys[0].Queue
			if left == 0 {
				c.wg.Wait()
			}
		})
		if left != 0 {
			rt.Fatalf("%d wait for ever", left)
		}
	})
}

// TestTransportKnowsWhoAsks: lane, priority and cost of a request come from
// Config and its context.
func TestTransportKnowsWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{
			Default: throttle.MustParseBudget("2/s burst 2"), DisableLearning: true,
			Lane: func(r *http.Request) string { return r.URL.Path[:2] },
			Cost: func(r *http.Request) throttle.Cost { return throttle.Cost{requests: int64(len(r.URL.Path) - 2)} },
		})
		var wg sync.WaitGroup
		send := func(ctx context.Context, path string) {
			wg.Go(func() {
				if _, err := get(t, ctx, tr, "http://h"+path); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		send(t.Context(), "/x00") // both units
		for _, path := range []string{"/a00", "/a11", "/b00", "/b11"} {
			send(t.Context(), path)
		}
		send(throttle.WithPriority(t.Context(), 1), "/c00")
		send(throttle.WithCost(t.Context(), throttle.Cost{requests: 0}), "/d00") // needs none
		wg.Wait()
		var got []string
		for _, a := range b.Arrived {
			got = append(got, a.Path+" "+a.At.Round(time.Millisecond).String())
		}
		want := "/x00 0s, /d00 0s, /c00 1s, /a00 2s, /b00 3s, /a11 4s, /b11 5s"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
	})
}

// TestALowerClassIsNotStarvedByOnesAndTwos: it has its share also if those of the
// higher class come one at a time, so that there is never a queue of them.
func TestALowerClassIsNotStarvedByOnesAndTwos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 2")
		burst(t, l, 2)
		done := make(chan error, 1)
		go func() {
			_, err := l.Take(throttle.WithPriority(t.Context(), -1), "k", throttle.Cost{requests: 2})
			done <- err
		}()
		synctest.Wait()
		granted := 0
		for ; len(done) == 0 && granted < 100; granted++ {
			if _, err := l.Take(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if granted != share {
			t.Errorf("%d went before the lower class had its turn, want %d", granted, share)
		}
	})
}

// TestLimitsInFlightThatOverlapStarveNobody: one that needs a place in each of
// two limits, of which neither holds the other's requests, gets both, though
// requests that need only one keep each full all the time.
func TestLimitsInFlightThatOverlapStarveNobody(t *testing.T) {
	for _, places := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { overlap(t, places) })
	}
}

func overlap(t *testing.T, places int) {
	b := newBase(func(r *http.Request) (*http.Response, error) {
		d := 70 * time.Millisecond // the two kinds never end together
		if r.Method == "GET" {
			d = 110 * time.Millisecond
		}
		time.Sleep(d)
		return testnet.Answer(r, 200, nil, nil), nil
	})
	limit := throttle.MustParseBudget(fmt.Sprintf("%d in flight", places))
	tr := newTransport(t, b, throttle.Config{DisableLearning: true, Budgets: map[string]throttle.Budget{"POST a": limit, "a/x": limit}})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var passed atomic.Int64
	for _, c := range []struct{ method, url string }{{"GET", "http://a/x"}, {"POST", "http://a/y"}} {
		for range 3 * places {
			wg.Go(func() {
				for ctx.Err() == nil {
					r, _ := http.NewRequestWithContext(ctx, c.method, c.url, nil)
					if resp, err := tr.RoundTrip(r); err == nil {
						resp.Body.Close()
						passed.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	before := passed.Load()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a/x", nil)
	if resp, err := tr.RoundTrip(r); err != nil {
		t.Errorf("%d places: %v", places, err)
	} else {
		resp.Body.Close()
	}
	if n := passed.Load() - before; n > int64(4*mayYield*places) {
		t.Errorf("%d places: %d others went first, want at most %d", places, n, 4*mayYield*places)
	}
}
