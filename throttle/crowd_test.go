package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

// TestNoWindowIsExceededByACrowdOfHosts: routes, pools, partitions, more hosts than are kept, and
// budgets that change meanwhile. The log is the server's, by account.
func TestNoWindowIsExceededByACrowdOfHosts(t *testing.T) {
	waits, refusals := 0, 0
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			w, r := hosts64(t, seed)
			waits, refusals = waits+w, refusals+r
		})
	}
	if waits < 100 || refusals < 20 {
		t.Errorf("%d waits, %d refusals, want many: the test has no teeth", waits, refusals)
	}
}

// book is the server's log.
type book struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	start time.Time
	log   map[string][]arrived
}

// count notes r under the accounts it draws on.
func (b *book) count(r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	part := r.Header.Get("Key")
	accounts := []string{"host " + r.URL.Host + part}
	if r.URL.Host == "p" || r.URL.Host == "q" {
		accounts = []string{"pool " + part}
	}
	if r.Method == "POST" && r.URL.Path == "/slow" {
		accounts = append(accounts, "slow "+r.URL.Host+part)
	}
	for _, name := range accounts {
		b.log[name] = append(b.log[name], arrived{time.Since(b.start), 1})
	}
}

// RoundTrip answers a little later, and counts at some time in between.
func (b *book) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	before, after, refuse := b.rnd.IntN(30), b.rnd.IntN(200), b.rnd.IntN(12) == 0
	b.mu.Unlock()
	if refuse {
		return nil, meterRefusal{errors.New("open")}
	}
	time.Sleep(time.Duration(before) * time.Millisecond)
	b.count(r)
	time.Sleep(time.Duration(after) * time.Millisecond)
	return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
}

func hosts64(t *testing.T, seed uint64) (waits, refusals int) {
	b := &book{rnd: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), log: make(map[string][]arrived)}
	var mu sync.Mutex
	tr := newTransport(t, metered{b}, throttle.Config{
		MaxKeys: 6, MaxWait: 4 * time.Second, DisableLearning: true,
		Budgets: map[string]throttle.Budget{
			"*.x":         throttle.MustParseBudget("9/2s burst 3"),
			"p":           throttle.MustParseBudget("70/3s, pool both"),
			"q":           throttle.MustParseBudget("70/3s, pool both"),
			"POST */slow": throttle.MustParseBudget("4/s burst 4"),
		},
		Partition: func(r *http.Request) string { return r.Header.Get("Key") },
		OnWait: func(w throttle.Wait) {
			mu.Lock()
			defer mu.Unlock()
			if !w.Over {
				waits++
			}
		},
	})
	var wg sync.WaitGroup
	for i := range uint64(64) {
		rnd := rand.New(rand.NewPCG(seed, i))
		wg.Go(func() {
			for range 15 {
				time.Sleep(time.Duration(rnd.IntN(800)) * time.Millisecond)
				err := wander(t, tr, rnd)
				var e *throttle.Error
				switch {
				case errors.As(err, &e):
					mu.Lock()
					refusals++
					mu.Unlock()
				case err != nil && notsent.Refused(err) != notsent.Meter:
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(4 * time.Second)
	if err := tr.SetBudget("*.x", throttle.MustParseBudget("5/2s burst 5")); err != nil {
		t.Error(err)
	}
	changed := time.Since(b.start)
	wg.Wait()
	b.judge(t, changed)
	return waits, refusals
}

// wander makes one request somewhere.
func wander(t *testing.T, tr *throttle.Transport, rnd *rand.Rand) error {
	host := []string{"p", "q", "h" + strconv.Itoa(rnd.IntN(10)) + ".x"}[rnd.IntN(3)]
	r, err := http.NewRequestWithContext(t.Context(), []string{"GET", "POST"}[rnd.IntN(2)], "http://"+host+[]string{"/", "/slow"}[rnd.IntN(2)], nil)
	if err != nil {
		return err
	}
	if n := rnd.IntN(4); n > 0 {
		r.Header.Set("Key", "k"+strconv.Itoa(n))
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// judge looks at every account's log: windows that began before the budget
// changed may be as full as the older one allowed.
func (b *book) judge(t *testing.T, changed time.Duration) {
	for name, log := range b.log {
		switch name[:4] {
		case "pool":
			judge(t.Errorf, throttle.MustParseBudget("70/3s").Rates[0], log)
		case "slow":
			judge(t.Errorf, throttle.MustParseBudget("4/s").Rates[0], log)
		case "host":
			judge(t.Errorf, throttle.MustParseBudget("9/2s").Rates[0], log)
			var late []arrived
			for _, a := range log {
				if a.at > changed+300*time.Millisecond {
					late = append(late, a)
				}
			}
			judge(t.Errorf, throttle.MustParseBudget("5/2s").Rates[0], late)
		}
	}
}

// crowd is 64 goroutines that send with random costs, some of which give up.
type crowd struct {
	waits, cancels, refunds, refusals, sent atomic.Int64
}

// refusal stands for the breaker's Meter.
type meterRefusal struct{ error }

func (meterRefusal) RefusedBy() notsent.By { return notsent.Meter }

// metered is a base that passes for a breaker's Meter.
type metered struct{ http.RoundTripper }

func (metered) Link() trip.Link { return trip.Link{Hosts: hosts.New(100)}.With(trip.Meter) }

// TestNoWindowIsExceededByACrowd: 64 goroutines over random budgets, costs, cancellations, refusals
// below and pauses; the log is the server's, which counts a request at some
// time between its being sent and its answer.
func TestNoWindowIsExceededByACrowd(t *testing.T) {
	var all crowd
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) { all.run(t, seed) })
	}
	for what, n := range map[string]int64{
		"waits": all.waits.Load(), "cancels": all.cancels.Load(), "refunds": all.refunds.Load(),
		"refusals": all.refusals.Load(), "requests": all.sent.Load(),
	} {
		if n < 20 {
			t.Errorf("%d %s in all, want many: the test has no teeth", n, what)
		}
	}
}

func (c *crowd) run(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	rates := []throttle.Rate{
		{Limit: 1 + rnd.IntN(200), Per: time.Second * time.Duration(1+rnd.IntN(5))},
		{Limit: 300 + rnd.IntN(3000), Per: 10 * time.Second, Burst: 300, Unit: "tokens"},
		{Limit: 100 + rnd.IntN(200), Per: 20 * time.Second},
	}
	most := int64(1 + rnd.IntN(30))
	budget := throttle.Budget{Rates: rates, InFlight: int(most)}
	var mu sync.Mutex
	logs := make(map[string][]arrived)
	var flying, peak atomic.Int64
	start := time.Now()
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		before, after, refuse := rnd.IntN(40), rnd.IntN(300), rnd.IntN(10) == 0
		mu.Unlock()
		if refuse {
			return nil, meterRefusal{errors.New("open")}
		}
		if n := flying.Add(1); n > peak.Load() {
			peak.Store(n)
		}
		defer flying.Add(-1)
		time.Sleep(time.Duration(before) * time.Millisecond)
		tokens, _ := strconv.ParseInt(r.URL.RawQuery, 10, 64)
		mu.Lock()
		now := time.Since(start)
		logs[requests] = append(logs[requests], arrived{now, 1})
		logs["tokens"] = append(logs["tokens"], arrived{now, tokens})
		mu.Unlock()
		c.sent.Add(1)
		time.Sleep(time.Duration(after) * time.Millisecond)
		return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
	})
	tr := newTransport(t, metered{base}, throttle.Config{Default: budget, MaxWait: 15 * time.Second, OnWait: func(w throttle.Wait) {
		if !w.Over {
			c.waits.Add(1)
		}
	}})
	var wg sync.WaitGroup
	for i := range uint64(64) {
		wg.Go(func() { c.caller(t, tr, rand.New(rand.NewPCG(seed, i))) })
	}
	time.Sleep(5 * time.Second)
	tr.Pause("a", time.Now().Add(2*time.Second))
	wg.Wait()
	for _, r := range rates {
		judge(t.Errorf, r, logs[cmp.Or(r.Unit, requests)])
	}
	if peak.Load() > most {
		t.Errorf("%d in flight, at most %d", peak.Load(), most)
	}
	c.settled(t, tr)
}

// caller sends a few requests.
func (c *crowd) caller(t *testing.T, tr *throttle.Transport, rnd *rand.Rand) {
	for range 12 {
		time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
		tokens := int64(rnd.IntN(120))
		ctx, cancel := context.WithCancel(throttle.WithCost(t.Context(), throttle.Cost{"tokens": tokens}))
		if rnd.IntN(4) == 0 {
			time.AfterFunc(time.Duration(1+rnd.IntN(2000))*time.Millisecond, cancel)
		}
		resp, err := get(t, ctx, tr, fmt.Sprint("http://a/?", tokens))
		var e *throttle.Error
		switch {
		case errors.As(err, &e):
			c.refusals.Add(1)
		case notsent.Refused(err) == notsent.Meter:
			c.refunds.Add(1)
		case err != nil:
			c.cancels.Add(1)
		default:
			resp.Body.Close()
		}
		cancel()
	}
}

// settled: whatever happened, nothing is left behind, and in the end everything
// is there again.
func (c *crowd) settled(t *testing.T, tr *throttle.Transport) {
	time.Sleep(time.Hour)
	if n := waiting(t, tr); n != 0 {
		t.Errorf("%d waiting in the end, want none", n)
	}
	for _, h := range tr.Stats().Hosts {
		if h.InFlight != 0 || len(h.Restrictions) != 0 {
			t.Errorf("%+v in the end, want nothing in flight and nothing restricted", h)
		}
		for _, b := range h.Budgets {
			if b.Limit != int64(b.Left) && b.Unit == "" || b.FullIn != 0 {
				t.Errorf("%s in the end: %v of %d left, full in %v", b.Text, b.Left, b.Limit, b.FullIn)
			}
		}
	}
}
