package throttle

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
)

// firstPart is a partition for each first segment that begins with "p".
func firstPart(r *http.Request) string {
	if part, _, _ := strings.Cut(r.URL.Path[1:], "/"); strings.HasPrefix(part, "p") {
		return part
	}
	return ""
}

// TestHostsHaveDomainsOfTheirOwn: whoever holds the lock of a host holds up
// nobody who calls another, unless budgets tie them together. Partitions and
// credentials of a host are one with it.
func TestHostsHaveDomainsOfTheirOwn(t *testing.T) {
	tr := newTransport(t, newBase(nil), Config{Partition: firstPart, Budgets: map[string]Budget{
		"x.pool": MustParseBudget("1000/s, pool p"), "*.pool": MustParseBudget("1000/s, pool p"),
	}})
	for _, url := range []string{"http://a/", "http://a/p1", "http://a/p2", "http://b/", "http://x.pool/", "http://y.pool/p1"} {
		mustGet(t, tr, url).Body.Close()
	}
	a := homeOf(tr, "a").domain.Load()
	tr.each(func(r *record) {
		e := r.lock()
		defer e.Unlock()
		want := a
		switch {
		case strings.HasSuffix(r.host, ".pool"):
			want = tr.domains.Shared
		case r.host == "b":
			want = e
			if e == a || e == tr.domains.Shared {
				t.Error("a and b have one domain")
			}
		}
		if e != want {
			t.Errorf("%s %q is not in the domain it belongs to", r.host, r.part)
		}
	})
	a.Lock()
	tr.domains.Shared.Lock()
	mustGet(t, tr, "http://b/").Body.Close()
	mustGet(t, tr, "http://b/p1").Body.Close()
	mustGet(t, tr, "http://new/").Body.Close()
	tr.domains.Shared.Unlock()
	a.Unlock()
}

// TestPartitionsOutliveTheirHost: a host that is met anew has one domain with
// partitions that were kept.
func TestPartitionsOutliveTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{MaxKeys: 3, Partition: firstPart, Default: MustParseBudget("5/s burst 5")})
		mustGet(t, tr, "http://a/p1").Body.Close()
		first := homeOf(tr, "a")
		for i := range 20 {
			time.Sleep(time.Minute)
			mustGet(t, tr, fmt.Sprintf("http://h%d/", i)).Body.Close()
			mustGet(t, tr, fmt.Sprintf("http://h%d/", i)).Body.Close() // the table looks at others first
		}
		again := homeOf(tr, "a")
		if again == first {
			t.Fatal("the host was not forgotten")
		}
		mustGet(t, tr, "http://a/p1").Body.Close()
		part := tr.parts.Find("a\x00p1")
		defer part.Release()
		if part.Value.domain.Load() != again.domain.Load() || again.domain.Load() == tr.domains.Shared {
			t.Error("the partition and its host have two domains")
		}
	})
}

// TestABudgetMovesThoseWhoWaitIntoAPool: in one step, and they keep their places.
func TestABudgetMovesThoseWhoWaitIntoAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := newBase(nil)
		tr := newTransport(t, base, Config{Budgets: map[string]Budget{"pooled": MustParseBudget("1/s burst 1, pool p"), "h": MustParseBudget("1/h")}})
		mustGet(t, tr, "http://pooled/").Body.Close()
		mustGet(t, tr, "http://h/0").Body.Close()
		ctx := WithMaxWait(t.Context(), 10*time.Hour)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { get(t, ctx, tr, fmt.Sprintf("http://h/%d", i+1)) })
			time.Sleep(time.Second)
		}
		if n := waiting(t, tr); n != 4 {
			t.Fatalf("%d wait, want 4", n)
		}
		if err := tr.SetBudget("h", MustParseBudget("1/s burst 1, pool p")); err != nil {
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
	pool := MustParseBudget("40/s, pool p")
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
	}), Config{MaxWait: most, MaxKeys: 12, Partition: firstPart, Default: MustParseBudget("30/s, 9 in flight"),
		Budgets: map[string]Budget{"*.pool": pool}})
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
				resp, err := get(t, WithPriority(ctx, rnd.IntN(2)), tr, "http://"+host+"/"+path)
				var e *Error
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
func meddle(t *testing.T, tr *Transport, rnd *rand.Rand, hosts []string, pool Budget, stop chan struct{}) {
	budgets := []Budget{pool, MustParseBudget("20/s"), MustParseBudget("50/s, 3 in flight"), {}}
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
