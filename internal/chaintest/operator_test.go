package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// stormConfig uses every feature at once; its hooks call back.
func stormConfig(rt **weir.Transport, random *rand.Rand) weir.Config {
	back := func() {
		(*rt).Stats()
		(*rt).Circuits().State("h0")
		(*rt).Throttle().Resume("h9")
	}
	return weir.Config{
		Throttle: throttle.Config{
			Default:   throttle.MustParseBudget("20/s burst 20, 300/m burst 300, 8 in flight"),
			Budgets:   map[string]throttle.Budget{"GET *.x/a/": throttle.MustParseBudget("5/s")},
			Partition: func(r *http.Request) string { return r.Header.Get("X-Part") },
			Lane:      func(r *http.Request) string { return r.Header.Get("X-Lane") },
			MaxKeys:   4 + random.IntN(6), MaxWait: time.Hour,
			OnWait: func(throttle.Wait) { back() }, OnLearn: func(throttle.Learned) { back() },
		},
		Retry: retry.Config{
			Hedge: retry.Hedge{After: 400 * time.Millisecond}, BufferBody: 1 << 10,
			OnAttempt: func(retry.Attempt) { back() },
		},
		Breaker: breaker.Config{
			Patience: time.Duration(random.IntN(2)) * time.Minute, OnStateChange: func(breaker.Change) { back() },
			Fallback: func(*http.Request, error) (*http.Response, error) { back(); return nil, nil },
		},
	}
}

// TestBudgetsHoldWhateverAnOperatorDoes: 64 goroutines, few keys, hosts that fail, limit, hang and
// stall, while an operator pauses, resumes, forces, releases and changes
// budgets. Every request ends, nothing is left, and each budget holds.
func TestBudgetsHoldWhateverAnOperatorDoes(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { operatorStorm(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

type stormBase struct {
	mu     sync.Mutex
	random *rand.Rand
	sent   []arrival
	open   atomic.Int64
}

func (b *stormBase) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.sent = append(b.sent, arrival{time.Now(), r.URL.Host + "#" + r.Header.Get("X-Part"), 1})
	dice, wait := b.random.IntN(24), time.Duration(b.random.IntN(900))*time.Millisecond
	b.mu.Unlock()
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if err := testnet.Wait(r.Context(), wait); err != nil {
		return nil, err
	}
	answer := func(status int, h http.Header) (*http.Response, error) {
		b.open.Add(1)
		return testnet.Answer(r, status, h, &counted{testnet.NewBody(strings.Repeat("x", 100)), &b.open, sync.Once{}}), nil
	}
	switch dice {
	case 0:
		return answer(429, http.Header{"Retry-After": {"2"}})
	case 1:
		return answer(503, http.Header{"Retry-After": {"1"}, "Content-Type": {"text/plain"}})
	case 2, 3:
		return answer(500, nil)
	case 4:
		return nil, io.ErrUnexpectedEOF
	}
	return answer(200, nil)
}

// counted is a body that counts itself out when it is closed.
type counted struct {
	*testnet.Body
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Body.Close()
}

func operatorStorm(t *testing.T, random *rand.Rand) {
	base := &stormBase{random: rand.New(rand.NewPCG(random.Uint64(), 1))}
	var rt *weir.Transport
	rt = must(weir.New(base, stormConfig(&rt, random)))(t)
	done := make(chan struct{})
	var operator sync.WaitGroup
	mine := rand.New(rand.NewPCG(random.Uint64(), 2))
	operator.Go(func() { operate(t, rt, mine, done) })
	var wg sync.WaitGroup
	for range 64 {
		random := rand.New(rand.NewPCG(random.Uint64(), 3))
		wg.Go(func() {
			for range 8 {
				stormRequest(t, rt, random)
			}
		})
	}
	wg.Wait()
	close(done)
	operator.Wait()
	synctest.Wait()
	if n := base.open.Load(); n != 0 {
		t.Errorf("%d answers were left open", n)
	}
	for _, h := range rt.Stats().Throttle.Hosts {
		if h.Queue != 0 || h.InFlight != 0 {
			t.Errorf("%s: %d requests are queued and %d in flight after all have ended", h.Host, h.Queue, h.InFlight)
		}
		for _, b := range h.Budgets {
			if b.Unit == "" && b.Left < float64(b.Limit) {
				t.Errorf("%s: of %d places in flight %v are free after all have ended, want all", h.Host, b.Limit, b.Left)
			}
		}
	}
	judge(t, base.sent, []throttle.Rate{{Limit: 20, Per: time.Second}, {Limit: 300, Per: time.Minute}})
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func operate(t *testing.T, rt *weir.Transport, random *rand.Rand, done chan struct{}) {
	for {
		host := fmt.Sprintf("h%d.x", random.IntN(3))
		switch random.IntN(6) {
		case 0:
			rt.Throttle().Pause(host, time.Now().Add(time.Duration(random.IntN(3000))*time.Millisecond))
		case 1:
			rt.Throttle().Resume(host)
		case 2:
			rt.Circuits().Force(host, []breaker.State{breaker.Open, breaker.Closed}[random.IntN(2)])
		case 3, 4:
			rt.Circuits().Release(host)
		case 5:
			if err := rt.Throttle().SetBudget("GET *.x/a/", throttle.Budget{Rates: []throttle.Rate{{Limit: 1 + random.IntN(9), Per: time.Second}}}); err != nil {
				t.Error(err)
			}
		}
		select {
		case <-done:
			for i := range 3 {
				rt.Circuits().Release(fmt.Sprintf("h%d.x", i))
			}
			return
		case <-time.After(time.Duration(1+random.IntN(700)) * time.Millisecond):
		}
	}
}

func stormRequest(t *testing.T, rt *weir.Transport, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(throttle.WithPriority(t.Context(), random.IntN(3)), time.Duration(1+random.IntN(40))*time.Second)
	defer cancel()
	var body io.Reader
	method := []string{"GET", "PUT", "POST"}[random.IntN(3)]
	if method != "GET" {
		body = io.MultiReader(strings.NewReader("once"))
	}
	r := must(http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://h%d.x/%c/", random.IntN(3), 'a'+rune(random.IntN(2))), body))(t)
	r.Header.Set("X-Part", []string{"", "p", "q"}[random.IntN(3)])
	r.Header.Set("X-Lane", fmt.Sprint(random.IntN(3)))
	resp, err := rt.RoundTrip(r)
	switch {
	case err == nil:
		if random.IntN(2) == 0 {
			io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close()
	case resp != nil:
		t.Error("an answer and an error")
	case errors.Is(err, weir.ErrNotSent) && strings.Contains(err.Error(), "EOF"):
		t.Errorf("not sent: %v", err)
	}
	runtime.Gosched()
}
