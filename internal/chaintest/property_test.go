package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
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

// arrival is one attempt as the base saw it.
type arrival struct {
	at     time.Time
	host   string
	tokens int64
}

// observer is a base that writes down what arrives, takes a while, and now and
// then fails.
type observer struct {
	mu     sync.Mutex
	log    []arrival
	random *rand.Rand
	broken atomic.Bool // answers nothing, so that circuits open
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	tokens, _ := r.Context().Value(tokensKey{}).(int64)
	o.log = append(o.log, arrival{time.Now(), r.URL.Host, tokens})
	wait, dice := time.Duration(o.random.IntN(300))*time.Millisecond, o.random.IntN(20)
	o.mu.Unlock()
	if err := testnet.Wait(r.Context(), wait); err != nil {
		return nil, err
	}
	switch {
	case o.broken.Load():
		return nil, io.ErrUnexpectedEOF
	case dice == 0:
		return testnet.Answer(r, 502, nil, testnet.NewBody("bad")), nil
	}
	return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
}

type tokensKey struct{}

// TestNoWindowAboveItsLimit: whatever 64 goroutines do, with random budgets,
// costs, cancellations, retries and circuits that open, no window of any rate
// ever holds more than its limit. Windows are counted by brute force from what
// arrived at the base.
func TestNoWindowAboveItsLimit(t *testing.T) {
	var waits, cancels, refunds int64
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c, r := storm(t, rand.New(rand.NewPCG(seed, 1)))
				waits, cancels, refunds = waits+w, cancels+c, refunds+r
			})
		})
	}
	if waits == 0 || cancels == 0 || refunds == 0 {
		t.Errorf("%d waits, %d cancellations, %d refunds: each must have happened", waits, cancels, refunds)
	}
}

// storm runs one schedule and returns how many requests waited, were
// cancelled while they did, and were refunded.
func storm(t *testing.T, random *rand.Rand) (waits, cancels, refunds int64) {
	rates := []throttle.Rate{
		{Limit: 5 + random.IntN(30), Per: time.Second},
		{Limit: 50 + random.IntN(200), Per: 7 * time.Second, Unit: "tokens"},
		{Limit: 100 + random.IntN(300), Per: time.Minute},
	}
	rates[0].Burst = 1 + random.IntN(rates[0].Limit)
	rates[2].Burst = rates[2].Limit
	base := &observer{random: rand.New(rand.NewPCG(random.Uint64(), 2))}
	rt := must(weir.New(base, weir.Config{
		Throttle: throttle.Config{Default: throttle.Budget{Rates: rates}, MaxWait: time.Hour},
		Breaker:  breaker.Config{OpenFor: time.Second, MaxOpenFor: 5 * time.Second},
	}))(t)
	var wg sync.WaitGroup
	for range 64 {
		mine := rand.New(rand.NewPCG(random.Uint64(), 3))
		wg.Go(func() {
			for range 12 {
				one(t, rt, mine)
			}
		})
	}
	for range 6 {
		time.Sleep(5 * time.Second)
		base.broken.Store(!base.broken.Load())
	}
	base.broken.Store(false)
	wg.Wait()
	judge(t, base.log, rates)
	for _, h := range rt.Stats().Throttle.Hosts {
		waits, cancels, refunds = waits+h.Waited, cancels+h.Cancelled, refunds+h.Refunded
		if h.Queue != 0 || h.InFlight != 0 {
			t.Errorf("%s: %d in the queue, %d in flight after all is done", h.Host, h.Queue, h.InFlight)
		}
	}
	return waits, cancels, refunds
}

// one makes a request that may be given up.
func one(t *testing.T, rt *weir.Transport, random *rand.Rand) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if random.IntN(3) == 0 {
		stop := time.AfterFunc(time.Duration(1+random.IntN(4000))*time.Millisecond, cancel)
		defer stop.Stop()
	}
	tokens := int64(random.IntN(40))
	ctx = context.WithValue(throttle.WithCost(ctx, throttle.Cost{"tokens": tokens}), tokensKey{}, tokens)
	r := get(t, fmt.Sprintf("http://h%d/", random.IntN(2))).WithContext(ctx)
	resp, err := rt.RoundTrip(r)
	var open *breaker.Error
	switch {
	case err == nil:
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	case errors.As(err, &open):
		time.Sleep(open.RetryAfter)
	}
	time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
}

// judge counts every window that begins with an arrival.
func judge(t *testing.T, log []arrival, rates []throttle.Rate) {
	t.Helper()
	if len(log) < 10 {
		t.Errorf("%d requests arrived, want 10 or more", len(log))
	}
	for _, rate := range rates {
		for i, first := range log {
			var sum int64
			for _, a := range log[i:] {
				if a.host == first.host && a.at.Sub(first.at) < rate.Per {
					sum += units(a, rate.Unit)
				}
			}
			if sum > int64(rate.Limit) {
				t.Errorf("%s: %d %s within %v, the limit is %d", first.host, sum, rate.Unit, rate.Per, rate.Limit)
				return
			}
		}
	}
}

func units(a arrival, unit string) int64 {
	if unit == "" {
		return 1
	}
	return a.tokens
}
