package chaintest

import (
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
)

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

// Requests to a language model whose tokens nobody counts but the server are served one
// after the other as tokens flow in, and a dear one is not overtaken until its time is
// over.
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
