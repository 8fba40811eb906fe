package chaintest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// stumbling is a host that is well, fails at random, or is down in one of several
// ways, one after the other. Everything follows from its seed.
type stumbling struct {
	mu     sync.Mutex
	random *rand.Rand
	until  time.Time
	fails  float64
	how    int
}

func (s *stumbling) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if now := time.Now(); now.After(s.until) {
		s.until = now.Add(time.Duration(1+s.random.IntN(20)) * time.Second)
		s.fails, s.how = []float64{0, 0, .5, .9, 1}[s.random.IntN(5)], s.random.IntN(4)
	}
	bad, how := s.random.Float64() < s.fails, s.how
	took := time.Duration(5+s.random.IntN(60)) * time.Millisecond
	s.mu.Unlock()
	if bad && how == 3 {
		took = time.Hour
	}
	if err := testnet.Wait(r.Context(), took); err != nil {
		return nil, err
	}
	switch {
	case !bad:
		return testnet.Answer(r, 200, nil, nil), nil
	case how == 0:
		return nil, errors.New("connection refused")
	}
	return testnet.Answer(r, []int{0, 500, 503}[how], nil, nil), nil
}

// TestNoCallFailsWhileTheCircuitIsNotClosed: the Fallback answers for every call that
// would end in an error or a 5xx while the circuit of its host is not closed: for
// refusals, probes, those that were on their way when it opened, and those that
// waited until their deadline. All of its answers are counted.
func TestNoCallFailsWhileTheCircuitIsNotClosed(t *testing.T) {
	all := 0 // that the fallback answered; there may be none where bare 503s are taken for a limit
	for seed := range uint64(testnet.Drawn(12, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var opened time.Time // zero: closed
				answered, failed, refused := 0, 0, 0
				rt := must(weir.New(&stumbling{random: rand.New(rand.NewPCG(seed, 21))}, weir.Config{Breaker: breaker.Config{
					Fallback: func(r *http.Request, _ error) (*http.Response, error) {
						mu.Lock()
						answered++
						mu.Unlock()
						return testnet.Answer(r, 203, nil, nil), nil
					},
					OnStateChange: func(c breaker.Change) {
						mu.Lock()
						defer mu.Unlock()
						if c.To == breaker.Closed {
							opened = time.Time{}
						} else if opened.IsZero() {
							opened = time.Now()
						}
					},
				}}))(t)
				random := rand.New(rand.NewPCG(seed, 22))
				var wg sync.WaitGroup
				for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))) {
					limit := []time.Duration{1500 * time.Millisecond, 3 * time.Second, time.Minute}[random.IntN(3)]
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						resp, err := rt.RoundTrip(get(t, "http://h/v1").WithContext(ctx))
						mu.Lock()
						defer mu.Unlock()
						if err == nil && resp.StatusCode < 500 {
							return
						}
						if failed++; errors.As(err, new(*breaker.Error)) {
							refused++
						}
						if !opened.IsZero() && opened.Before(time.Now()) {
							t.Errorf("%v, %v, %v after the circuit opened", resp, err, time.Since(opened))
						}
					})
				}
				wg.Wait()
				counted := uint64(0)
				for _, c := range rt.Stats().Breaker.Circuits {
					counted += c.Fallbacks
				}
				t.Logf("%d answered, %d failed", answered, failed)
				if all += answered; refused > 0 || counted != uint64(answered) {
					t.Errorf("%d refused; %d answered, %d counted", refused, answered, counted)
				}
			})
		})
	}
	testnet.Judge(t, all > 0, "the fallback answered nothing")
}
