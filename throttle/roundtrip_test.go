package throttle_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// foresight compares outlooks with what becomes of the requests.
type foresight struct {
	mu     sync.Mutex
	r      *rand.Rand
	tr     *throttle.Transport
	counts map[string]int
}

type expectKey struct{}

func (f *foresight) int(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.IntN(n)
}

// RoundTrip is a server that now and then refuses or states a limit.
func (f *foresight) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(f.int(300)) * time.Millisecond)
	h := http.Header{}
	switch f.int(15) {
	case 0:
		h.Set("Retry-After", strconv.Itoa(f.int(4)))
		return testnet.Answer(r, 429, h, nil), nil
	case 1:
		h.Set("X-Ratelimit-Limit", "10")
		h.Set("X-Ratelimit-Remaining", strconv.Itoa(f.int(10)))
		h.Set("X-Ratelimit-Reset", strconv.Itoa(f.int(5)))
	}
	return testnet.Answer(r, 200, h, nil), nil
}

func (f *foresight) budget() throttle.Budget {
	rates := []string{"5/s", "10/s burst 10", "3/s bucket 6", "20/s warmup 2s", "50/m align UTC burst 50", "200 tokens/s",
		"100 tokens/s bucket 150", "100/10s burst 20", "300 tokens/10s burst 300"}
	b := throttle.MustParseBudget(rates[f.int(len(rates))] + ", " + rates[f.int(len(rates))])
	b.InFlight = f.int(3)
	return b
}

func (f *foresight) request(ctx context.Context) *http.Request {
	ctx = throttle.WithCost(throttle.WithPriority(ctx, f.int(2)), throttle.Cost{"tokens": int64(f.int(100))})
	r, err := http.NewRequestWithContext(ctx, "GET", "http://h/"+string("ab"[f.int(2)]), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func (f *foresight) run(t *testing.T, seed uint64) {
	f.r = rand.New(rand.NewPCG(seed, 5))
	c := throttle.Config{
		Budgets:         map[string]throttle.Budget{"h": f.budget(), "h/a": f.budget()},
		MaxWait:         []time.Duration{8 * time.Second, -1, time.Second}[f.int(3)],
		DisableLearning: f.int(3) == 0, Pace: f.int(4) == 0,
		OnWait: func(w throttle.Wait) {
			if expect, ok := w.Ctx.Value(expectKey{}).(*time.Duration); ok && !w.Over {
				*expect = w.Expect
			}
		},
	}
	f.tr = newTransport(t, f, c)
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			time.Sleep(time.Duration(f.int(4000)) * time.Millisecond)
			f.tr.RoundTrip(f.request(t.Context()))
		})
	}
	for range 20 {
		time.Sleep(time.Duration(f.int(300)) * time.Millisecond)
		switch f.int(12) {
		case 0:
			f.tr.Pause("h", time.Now().Add(time.Duration(f.int(3000))*time.Millisecond))
		case 1:
			f.tr.Resume("h")
		}
		synctest.Wait()
		f.compare(t, &wg)
	}
	wg.Wait()
}

func (f *foresight) compare(t *testing.T, wg *sync.WaitGroup) {
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if f.int(3) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1000+f.int(3000))*time.Millisecond) // an answer can come in time
	}
	expect, end := time.Duration(0), make(chan error, 1)
	r := f.request(context.WithValue(ctx, expectKey{}, &expect))
	wait, err := f.tr.Outlook(r)
	wg.Go(func() {
		defer cancel()
		_, err := f.tr.RoundTrip(r)
		end <- err
	})
	synctest.Wait()
	var ended error
	select {
	case ended = <-end:
	default:
	}
	var foreseen, refused *throttle.Error
	switch errors.As(err, &foreseen); {
	case errors.As(ended, &refused) != (err != nil):
		t.Errorf("outlook %v, %v, but the request ends with %v", wait, err, ended)
	case err != nil && (foreseen.Reason != refused.Reason || foreseen.RetryAfter != refused.RetryAfter):
		t.Errorf("outlook %v, but the request ends with %v", foreseen, refused)
	case err != nil:
		f.counts["refused"]++
	case wait != expect:
		t.Errorf("outlook %v, but the request expects to wait %v", wait, expect)
	case wait > 0:
		f.counts["wait"]++
	default:
		f.counts["go"]++
	}
}

// TestOutlookIsWhatHappens: at any time, a request that is sent now is refused
// if its outlook says so, and for that reason; else it expects to wait as long
// as that, or it need not wait or nobody knows how long.
func TestOutlookIsWhatHappens(t *testing.T) {
	counts := make(map[string]int)
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { (&foresight{counts: counts}).run(t, seed) })
	}
	for _, what := range []string{"refused", "wait", "go"} {
		if counts[what] < 100 {
			t.Errorf("%d outlooks of %q in all: the test has no teeth", counts[what], what)
		}
	}
	t.Log(counts)
}

// An outlook is that of all layers, and a request without a host has none here.
func TestOutlookOfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/m burst 1"), MaxWait: -1})
		tr := newTransport(t, below, throttle.Config{Default: throttle.MustParseBudget("1/s burst 1")})
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://h/", nil)
		if d, err := tr.Outlook(r); d != 0 || err != nil {
			t.Errorf("%v, %v", d, err)
		}
		mustGet(t, tr, "http://h/")
		var e *throttle.Error
		if _, err := tr.Outlook(r); !errors.As(err, &e) || e.Reason != throttle.WaitTooLong {
			t.Errorf("%v, want the refusal below", err)
		}
		for _, r := range []*http.Request{{}, {URL: r.URL.JoinPath()}} {
			if r.URL != nil {
				r.URL.Host = ""
			}
			if d, err := newTransport(t, newBase(nil), throttle.Config{}).Outlook(r); d != 0 || err != nil {
				t.Errorf("%v: %v, %v", r.URL, d, err)
			}
		}
	})
}

// An outlook keeps no host: however many were asked for, there is room for those
// that are called.
func TestOutlookKeepsNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{MaxKeys: 10})
		for i := range 100 {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://h"+strconv.Itoa(i), nil)
			if _, err := tr.Outlook(r); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		mustGet(t, tr, "http://h/").Body.Close()
		for _, h := range tr.Stats().Hosts {
			if h.Overflow {
				t.Error("there was no room for the host that was called")
			}
		}
	})
}
