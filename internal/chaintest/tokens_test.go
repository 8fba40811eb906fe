package chaintest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// The calls of the measurement of docs/llm.md. The prompt is small, and the
// answer may take maxTokens; on average it takes 470 with the prompt.
const (
	modelCalls  = 200
	modelPrompt = 60
	maxTokens   = 1000
)

// modelServer is a language model's API: two token buckets, of 300 requests and
// 60000 tokens a minute, stated in headers as OpenAI does.
type modelServer struct {
	token    int  // takes so many milliseconds
	reserves bool // all of max_tokens when a call arrives, and gives back what is left when it has answered

	mu       sync.Mutex
	rnd      *rand.Rand
	requests modelBucket
	tokens   modelBucket
	refused  int
}

func (s *modelServer) begin() {
	s.rnd = rand.New(rand.NewPCG(1, 2))
	s.requests = fullBucket(300)
	s.tokens = fullBucket(60000)
}

func (s *modelServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), 20*time.Millisecond); err != nil {
		return nil, err
	}
	used, h, ok := s.arrive()
	if !ok {
		return testnet.Answer(r, http.StatusTooManyRequests, h, http.NoBody), nil
	}
	if err := testnet.Wait(r.Context(), time.Duration(used)*time.Duration(s.token)*time.Millisecond); err != nil {
		return nil, err
	}
	if s.reserves {
		s.mu.Lock()
		s.tokens.look()
		s.tokens.there += modelPrompt + maxTokens - used
		s.mu.Unlock()
	}
	h.Set("Used", strconv.Itoa(int(used)))
	return testnet.Answer(r, http.StatusOK, h, http.NoBody), nil
}

// arrive charges a call, or refuses it.
func (s *modelServer) arrive() (used float64, h http.Header, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used = modelPrompt + float64(s.rnd.IntN(821))
	charged := used
	if s.reserves {
		charged = modelPrompt + maxTokens
	}
	s.requests.look()
	s.tokens.look()
	h = make(http.Header)
	if ok = s.requests.there >= 1 && s.tokens.there >= charged; ok {
		s.requests.there--
		s.tokens.there -= charged
	} else {
		s.refused++
		h.Set("Retry-After", retryAfter(max(s.requests.wait(1), s.tokens.wait(charged))))
	}
	s.requests.state(h, "Requests")
	s.tokens.state(h, "Tokens")
	return used, h, ok
}

// A modelWay is one way to call the model.
type modelWay struct {
	budget       string
	cost, settle bool
}

// run makes all calls at once and returns how long they took.
func (w modelWay) run(t *testing.T, s *modelServer) (took time.Duration, failed int) {
	var b throttle.Budget
	if w.budget != "" {
		b = throttle.MustParseBudget(w.budget)
	}
	rt, err := weir.New(s, weir.Config{
		Throttle: throttle.Config{Budgets: map[string]throttle.Budget{"POST model.example/v1/": b}, MaxWait: time.Hour},
		Retry:    retry.Config{AttemptTimeout: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range modelCalls {
		wg.Go(func() {
			if !w.call(t.Context(), rt) {
				mu.Lock()
				failed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return time.Since(start), failed
}

func (w modelWay) call(ctx context.Context, rt http.RoundTripper) bool {
	if w.cost {
		ctx = throttle.WithCost(ctx, throttle.Cost{"tokens": modelPrompt + maxTokens})
	}
	r, err := http.NewRequestWithContext(ctx, "POST", "http://model.example/v1/chat", nil)
	if err != nil {
		return false
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	used, err := strconv.ParseInt(resp.Header.Get("Used"), 10, 64)
	if err == nil && w.settle {
		err = throttle.Settle(resp, throttle.Cost{"tokens": used})
	}
	return err == nil && resp.StatusCode == http.StatusOK
}

// What docs/llm.md recommends is never refused, and as fast as knowing nothing
// but what the model states. The figures there are what this test logs:
//
//	go test -run TestTokenBudgetsOfAModel -v .
func TestTokenBudgetsOfAModel(t *testing.T) {
	const bucket = "300/m bucket 300, 60000 tokens/m bucket 60000"
	for _, w := range []struct {
		modelWay
		most []float64 // seconds, with tokens of 2 and 10 ms: if all is charged on arrival, and if max_tokens are reserved
	}{
		{modelWay{}, nil},
		{modelWay{"", true, true}, []float64{45, 62, 47, 68}},
		{modelWay{bucket, true, true}, []float64{45, 62, 47, 68}},
		{modelWay{bucket, true, false}, nil},
		{modelWay{"300/m burst 300, 60000 tokens/m burst 60000", true, true}, []float64{70, 95, 74, 99}},
		{modelWay{"300/m, 60000 tokens/m", true, true}, []float64{100, 123, 100, 123}},
		{modelWay{"300/m, 60000 tokens/m", true, false}, nil},
	} {
		line := fmt.Sprintf("%-46s cost %-5t settle %-5t", w.budget, w.cost, w.settle)
		for i, s := range []*modelServer{{token: 2}, {token: 10}, {token: 2, reserves: true}, {token: 10, reserves: true}} {
			synctest.Test(t, func(t *testing.T) {
				s.begin()
				took, failed := w.run(t, s)
				line += fmt.Sprintf(" %6.1f s %3d refused", took.Seconds(), s.refused)
				if failed > 0 {
					t.Errorf("%+v: %d calls failed, want none", w, failed)
				}
				if w.most != nil && (s.refused > 0 || took.Seconds() > w.most[i]) {
					t.Errorf("%+v, %d ms a token, reserves %t: %v and %d refused, want none and at most %v s", w.modelWay, s.token, s.reserves, took, s.refused, w.most[i])
				}
			})
		}
		t.Log(line)
	}
}

// tokens is a language model's API: a bucket of tokens, of which each request takes as
// many as its header Tokens says, known to nobody but the server.
type tokens struct {
	modelBucket
	said    bool          // refusals say when to come back
	takes   time.Duration // until an answer that is good
	mu      sync.Mutex
	refused int
}

func (s *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	n, _ := strconv.ParseFloat(r.Header.Get("Tokens"), 64)
	r.Body.Close()
	time.Sleep(30 * time.Millisecond)
	h, status := s.take(n)
	if status == http.StatusOK {
		time.Sleep(s.takes)
	}
	return testnet.Answer(r, status, h, testnet.NewBody("{}")), nil
}

func (s *tokens) take(n float64) (h http.Header, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
	h, status = make(http.Header), http.StatusOK
	if s.there >= n {
		s.there -= n
	} else {
		s.refused++
		status = http.StatusTooManyRequests
		if s.said {
			h.Set("Retry-After", retryAfter(s.wait(n)))
		}
	}
	s.state(h, "Tokens")
	return h, status
}

// Only the server counts the tokens of a language model. Requests are served one after the
// other as tokens flow in, and others do not overtake an expensive one until its time is over.
func TestTokensThatNobodyCountsLoseNoCall(t *testing.T) {
	const calls, size, rate = 300, 30000, 30000. / 60
	for _, takes := range []time.Duration{100 * time.Millisecond, 2 * time.Second} {
		for _, said := range []bool{true, false} {
			t.Run(fmt.Sprintf("answers take %v, refusals say when %t", takes, said), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &tokens{modelBucket: fullBucket(size), said: said, takes: takes}
					rt := must(weir.New(s, weir.Config{}))(t)
					rnd, sum, began := rand.New(rand.NewPCG(1, 2)), 0, time.Now()
					jobs := make(chan int)
					var all sync.WaitGroup
					for range 20 {
						all.Go(func() {
							for n := range jobs {
								r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://llm.example/v1/chat", strings.NewReader("{}"))
								r.Header.Set("Tokens", strconv.Itoa(n))
								resp, err := rt.RoundTrip(r)
								if err != nil || resp.StatusCode != http.StatusOK {
									t.Errorf("a call of %d tokens: %v, %v", n, resp, err)
									continue
								}
								resp.Body.Close()
							}
						})
					}
					for range calls {
						n := 200 + rnd.IntN(1800)
						sum += n
						jobs <- n
					}
					close(jobs)
					all.Wait()
					took, ideal := time.Since(began), time.Duration(float64(sum-size)/rate*float64(time.Second))
					t.Logf("%v (ideal %v), %d refused", took, ideal, s.refused)
					if took > ideal*11/10 || s.refused > calls/2 {
						t.Errorf("took %v, with %d refusals; want at most a tenth more than %v and %d", took, s.refused, ideal, calls/2)
					}
				})
			})
		}
	}
}
