package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestABudgetMovesThoseWhoWaitIntoAPool: in one step, and they keep their places.
func TestABudgetMovesThoseWhoWaitIntoAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := newBase(nil)
		tr := newTransport(t, base, throttle.Config{Budgets: map[string]throttle.Budget{"pooled": throttle.MustParseBudget("1/s burst 1, pool p"), "h": throttle.MustParseBudget("1/h")}})
		mustGet(t, tr, "http://pooled/").Body.Close()
		mustGet(t, tr, "http://h/0").Body.Close()
		ctx := throttle.WithMaxWait(t.Context(), 10*time.Hour)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { get(t, ctx, tr, fmt.Sprintf("http://h/%d", i+1)) })
			time.Sleep(time.Second)
		}
		if n := waiting(t, tr); n != 4 {
			t.Fatalf("%d wait, want 4", n)
		}
		if err := tr.SetBudget("h", throttle.MustParseBudget("1/s burst 1, pool p")); err != nil {
			t.Fatal(err)
		}
		since := time.Since(base.Start)
		wg.Wait()
		base.Mu.Lock()
		defer base.Mu.Unlock()
		var order []string
		for _, a := range base.Arrived[1:] {
			order = append(order, a.Path)
		}
		if !slices.Equal(order, []string{"/0", "/1", "/2", "/3", "/4"}) {
			t.Errorf("they went as %q", order)
		}
		if last := base.Arrived[len(base.Arrived)-1].At; last > since+5*time.Second {
			t.Errorf("the last went after %v, want at most 5 s after %v", last, since)
		}
	})
}

// TestBudgetsChangeUnderLoad: 64 callers of few hosts and partitions, while budgets
// come, go and move hosts into a pool, hosts are paused and forgotten and statistics
// are read. Nobody waits for longer than it may, or for nothing; what a pool lets
// through stays within it; nothing is left behind.
func TestBudgetsChangeUnderLoad(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { changing(t, seed) })
	}
}

func changing(t *testing.T, seed uint64) {
	const most = 20 * time.Second
	pool := throttle.MustParseBudget("40/s, pool p")
	var mu sync.Mutex
	pooled := make(map[string][]arrived) // by partition, each of which has its own
	rnd := rand.New(rand.NewPCG(seed, 3))
	start := time.Now()
	tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		if strings.HasSuffix(r.URL.Host, ".pool") {
			part := firstPart(r)
			pooled[part] = append(pooled[part], arrived{time.Since(start), 1})
		}
		took := rnd.IntN(100)
		mu.Unlock()
		time.Sleep(time.Duration(took) * time.Millisecond)
		return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
	}), throttle.Config{MaxWait: most, MaxKeys: 12, Partition: firstPart, Default: throttle.MustParseBudget("30/s, 9 in flight"),
		Budgets: map[string]throttle.Budget{"*.pool": pool}})
	hosts := []string{"a", "b", "c", "d", "e", "1.pool", "2.pool"}
	paths := []string{"", "p1/x", "p2", "x"}
	var wg, done sync.WaitGroup
	stop := make(chan struct{})
	for i := range uint64(64) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 100+i))
			for range 30 {
				host, path := hosts[rnd.IntN(len(hosts))], paths[rnd.IntN(len(paths))]
				if rnd.IntN(8) == 0 {
					host = fmt.Sprintf("once%d", rnd.Uint32())
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rnd.IntN(5) == 0 {
					time.AfterFunc(time.Duration(1+rnd.IntN(900))*time.Millisecond, cancel)
				}
				began := time.Now()
				resp, err := get(t, throttle.WithPriority(ctx, rnd.IntN(2)), tr, "http://"+host+"/"+path)
				var e *throttle.Error
				switch {
				case err == nil:
					time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
					resp.Body.Close()
				case !errors.As(err, &e) && ctx.Err() == nil:
					t.Error(err)
				}
				if d := time.Since(began); d > most+time.Second {
					t.Errorf("%s ended after %v", host, d)
				}
				cancel()
			}
		})
	}
	done.Go(func() { meddle(t, tr, rand.New(rand.NewPCG(seed, 5)), hosts[:5], pool, stop) })
	wg.Wait()
	close(stop)
	done.Wait()
	time.Sleep(time.Hour)
	if n := waiting(t, tr); n != 0 {
		t.Errorf("%d wait in the end", n)
	}
	for _, log := range pooled {
		judge(t.Errorf, pool.Rates[0], log)
	}
	for _, h := range tr.Stats().Hosts {
		if h.Queue != 0 || h.InFlight != 0 {
			t.Errorf("%+v in the end", h)
		}
	}
}

// meddle changes what it may until stop is closed.
func meddle(t *testing.T, tr *throttle.Transport, rnd *rand.Rand, hosts []string, pool throttle.Budget, stop chan struct{}) {
	budgets := []throttle.Budget{pool, throttle.MustParseBudget("20/s"), throttle.MustParseBudget("50/s, 3 in flight"), {}}
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1+rnd.IntN(300)) * time.Millisecond):
		}
		host := hosts[rnd.IntN(len(hosts))]
		switch rnd.IntN(6) {
		case 0:
			tr.Pause(host, time.Now().Add(time.Duration(rnd.IntN(3000))*time.Millisecond))
		case 1:
			tr.Resume(host)
		case 2:
			tr.Stats()
		default:
			if rnd.IntN(2) == 0 {
				host += "/x"
			}
			if err := tr.SetBudget(host, budgets[rnd.IntN(len(budgets))]); err != nil {
				t.Error(err)
			}
		}
	}
}
