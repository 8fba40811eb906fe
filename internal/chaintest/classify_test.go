package chaintest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// shop is a GraphQL API as Shopify's: a bucket of points that each query draws
// on, and what cannot be drawn is refused with status 200.
type shop struct {
	size, rate float64
	need       func(mutation int) float64
	mu         sync.Mutex
	left       float64
	last       time.Time
	refused    int
	executed   map[string]int // mutations, by their text
}

func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	time.Sleep(20 * time.Millisecond)
	i, _ := strconv.Atoi(string(text))
	need := s.need(i)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.left = min(s.size, s.left+now.Sub(s.last).Seconds()*s.rate)
	s.last = now
	body, actual := `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]`, "null"
	if s.left >= need {
		s.left -= need
		s.executed[string(text)]++
		body, actual = `{"data":{"done":true}`, fmt.Sprint(need)
	} else {
		s.refused++
	}
	body += fmt.Sprintf(`,"extensions":{"cost":{"requestedQueryCost":%v,"actualQueryCost":%s,"throttleStatus":{"maximumAvailable":%v,"currentlyAvailable":%v,"restoreRate":%v}}}}`,
		need, actual, s.size, int(s.left), s.rate)
	return testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, testnet.NewBody(body)), nil
}

// A GraphQL mutation that was refused as THROTTLED is repeated like a request
// that got a 429, after the time that the server's figures ask for; each is
// executed once. What mutations cost is learned from what the server says of those
// before: who says nothing of it is hardly refused more than who does.
func TestGraphQLThrottledIsRepeated(t *testing.T) {
	const size, rate = 1000, 50
	said := func(r *http.Request) throttle.Cost { return throttle.Cost{"points": 300} }
	alike := func(int) float64 { return 300 }
	mixed := func(i int) float64 { return float64(50 + i*7919%12*50) } // 50 to 600
	for _, tt := range []struct {
		name           string
		cost           func(*http.Request) throttle.Cost
		need           func(int) float64
		calls, refused int
		longer         float64
	}{
		{"nothing said about costs", nil, alike, 12, 4, 1.1},
		{"costs said", said, alike, 12, 4, 1.1},
		{"mixed costs", nil, mixed, 12, 12, 1.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{size: size, rate: rate, need: tt.need, left: size, last: time.Now(), executed: make(map[string]int)}
				rt := must(weir.New(s, weir.Config{Throttle: throttle.Config{Cost: tt.cost}}))(t)
				began, all := time.Now(), sync.WaitGroup{}
				points := 0.0
				for i := range tt.calls {
					points += tt.need(i)
					all.Go(func() { mutate(t, rt, i) })
				}
				all.Wait()
				took, ideal := time.Since(began), time.Duration((points-size)/rate*float64(time.Second))
				for text, n := range s.executed {
					if n != 1 {
						t.Errorf("mutation %s was executed %d times, want once", text, n)
					}
				}
				if len(s.executed) != tt.calls || s.refused > tt.refused || took.Seconds() > ideal.Seconds()*tt.longer {
					t.Errorf("%d executed, %d refused, after %v; want %d, at most %d, at most %v times %v", len(s.executed), s.refused, took, tt.calls, tt.refused, tt.longer, ideal)
				}
				t.Logf("%v (ideal %v), %d refused", took, ideal, s.refused)
			})
		})
	}
}

// mutate sends one mutation, which must be executed.
func mutate(t *testing.T, rt http.RoundTripper, i int) {
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://shop.example/admin/api/2026-01/graphql.json", strings.NewReader(strconv.Itoa(i)))
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(text), `"done":true`) {
		t.Errorf("the mutation was answered %s, want that it is done", text)
	}
}

// Answers of status 200 and 400 are read only where GraphQL may have refused something, and only
// some are taken for refusals.
func TestWhichAnswersAreReadForGraphQL(t *testing.T) {
	const (
		refusal = `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`
		json    = "application/json"
	)
	for _, tt := range []struct {
		name, method, path string
		status             int
		kind, body         string
		throttled, read    bool
	}{
		{"GitHub", "POST", "/graphql", 200, json, refusal, true, true},
		{"GitHub Enterprise", "POST", "/api/graphql", 200, json, refusal, true, true},
		{"by GET", "GET", "/graphql", 200, json, refusal, true, true},
		{"Linear, by status 400", "POST", "/graphql", 400, json, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, true, true},
		{"by the answer's type", "POST", "/v2", 200, "application/graphql-response+json; charset=utf-8", refusal, true, true},
		{"good", "POST", "/graphql", 200, json, `{"data":{"a":1}}`, false, true},
		{"served in part", "POST", "/graphql", 200, json, `{"data":{"a":1,"b":null},"errors":[{"path":["b"],"extensions":{"code":"THROTTLED"}}]}`, false, true},
		{"longer than PeekBody", "POST", "/graphql", 200, json, refusal + strings.Repeat(" ", 5000), true, true},
		{"too long to be sure", "POST", "/graphql", 200, json, refusal[:len(refusal)-1] + strings.Repeat(" ", 5000) + "}", false, true},
		{"another path", "POST", "/v1/items", 200, json, refusal, false, false},
		{"another path by GET", "GET", "/v1/items", 200, json, refusal, false, false},
		{"a page about it", "GET", "/docs/about-graphql", 200, json, refusal, false, false},
		{"another method", "PUT", "/graphql", 200, json, refusal, false, false},
		{"another status", "POST", "/graphql", 201, json, refusal, false, false},
		{"events", "POST", "/graphql", 200, "text/event-stream", "data: " + refusal + "\n\n", false, false},
		{"parts", "POST", "/graphql", 200, "multipart/mixed; boundary=x", refusal, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, first := 0, testnet.NewBody(tt.body)
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					if n++; n > 1 {
						return stub(r)
					}
					resp := testnet.Answer(r, tt.status, http.Header{"Content-Type": {tt.kind}}, first)
					resp.ContentLength = -1
					return resp, nil
				}), weir.Config{}))(t)
				r := get(t, "https://api.example"+tt.path)
				r.Method = tt.method
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if again := n == 2; again != tt.throttled {
					t.Errorf("%d attempts, throttled is %t", n, tt.throttled)
				}
				if read := first.Reads() > 0; read != tt.read {
					t.Errorf("read before the caller got it: %t, want %t", read, tt.read)
				}
				if got, err := io.ReadAll(resp.Body); n == 1 && (string(got) != tt.body || err != nil) {
					t.Errorf("the caller got %.60q, %v", got, err)
				}
				resp.Body.Close()
			})
		})
	}
}

// A mutation that is refused at a path which does not tell of GraphQL is repeated as
// at one that does, because its body tells, and also if weir keeps that body. A search
// that is answered alike is not repeated, and nothing of its answer is read.
func TestGraphQLIsRepeatedAtAnyPath(t *testing.T) {
	const refusal = `{"errors":[{"extensions":{"code":"COMPLEXITY_BUDGET_EXHAUSTED","retry_in_seconds":5}}]}`
	for _, tt := range []struct {
		name, body string
		kept       bool // by weir, because the request has no GetBody
		want       int  // attempts
	}{
		{"a mutation", `{"query":"mutation { add(id: 1) { id } }"}`, false, 2},
		{"one that weir keeps", `{"query":"mutation { add(id: 1) { id } }"}`, true, 2},
		{"a list", `[{"query":"mutation { add(id: 1) { id } }"},{"query":"{me}"}]`, false, 2},
		{"a search", `{"query":{"match":{"id":1}}}`, false, 1},
		{"a search by words", `{"query":"mutation of a gene"}`, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				first, began := testnet.NewBody(refusal), time.Now()
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					text, _ := io.ReadAll(r.Body)
					r.Body.Close()
					if bodies = append(bodies, string(text)); len(bodies) > 1 {
						return stub(r)
					}
					resp := testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, first)
					resp.ContentLength = -1
					return resp, nil
				}), weir.Config{Retry: retry.Config{BufferBody: 1 << 10}}))(t)
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://api.monday.example/v2", strings.NewReader(tt.body))
				r.Header.Set("Content-Type", "application/json")
				if tt.kept {
					r.GetBody = nil
				}
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if len(bodies) != tt.want || bodies[len(bodies)-1] != tt.body {
					t.Errorf("%d attempts, the last with %q; want %d with all of it", len(bodies), bodies[len(bodies)-1], tt.want)
				}
				if again := tt.want > 1; again != (first.Reads() > 0) || again && time.Since(began) < 5*time.Second {
					t.Errorf("the first answer was read: %t, and all took %v; want it read, and 5s or more, only if it is repeated: %t", first.Reads() > 0, time.Since(began), again)
				}
			})
		})
	}
}

// The last refusal of a row, when there is no more time, is the caller's, whole.
func TestGraphQLRefusalIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refusal = `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(refusal)), nil
		}), weir.Config{}))(t)
		r := get(t, "https://api.example/graphql")
		r.Method = "POST"
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != refusal || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		resp.Body.Close()
	})
}

// What Classify says is so for all layers: what it calls throttled is repeated
// whatever its method and opens no circuit; what it calls no limit is neither
// repeated nor a bad sign. It is called once for each answer.
func TestClassifyRulesAllLayers(t *testing.T) {
	busy := func(s headers.Signal) headers.Signal {
		s.Throttled, s.RetryAfter = true, headers.Opt[time.Duration]{Value: time.Second, Known: true}
		return s
	}
	none := func(s headers.Signal) headers.Signal { return headers.Signal{} }
	same := func(s headers.Signal) headers.Signal { return s }
	for _, tt := range []struct {
		name     string
		status   int
		classify func(headers.Signal) headers.Signal
		attempts int // of a POST that would be served at the third
		open     bool
	}{
		{"a 500 that is throttled", 500, busy, 3, false},
		{"a 503 that is throttled", 503, busy, 3, false},
		{"a 200 that is throttled", 200, busy, 3, false},
		{"a 500", 500, same, 1, true},
		{"a 429", 429, same, 3, false},
		{"a 429 that is no limit", 429, none, 1, false},
		{"a 503 that is no limit", 503, none, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent, asked, bad := 0, 0, 2
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					r.Body.Close()
					if sent++; sent > bad {
						return stub(r)
					}
					return testnet.Answer(r, tt.status, nil, testnet.NewBody("x")), nil
				}), weir.Config{
					Throttle: throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
						if asked++; asked > bad {
							return s
						}
						return tt.classify(s)
					}},
					Breaker: breaker.Config{Consecutive: 1, MinCalls: 1, FailureRate: 0.5},
				}))(t)
				post := func() error {
					r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://h/x", strings.NewReader("body"))
					resp, err := rt.RoundTrip(r)
					if err == nil {
						resp.Body.Close()
					}
					return err
				}
				if err := post(); err != nil {
					t.Error(err)
				}
				if sent != tt.attempts || asked != sent {
					t.Errorf("%d attempts, Classify asked %d times; want %d", sent, asked, tt.attempts)
				}
				var refused *breaker.Error
				if err := post(); errors.As(err, &refused) != tt.open {
					t.Errorf("then %v; want the circuit open: %t", err, tt.open)
				}
			})
		})
	}
}

// A throttled probe is a good sign, as a 429 is: the host lives.
func TestThrottledProbeIsAGoodSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if down {
				return nil, io.ErrUnexpectedEOF
			}
			return testnet.Answer(r, 500, nil, testnet.NewBody("x")), nil
		}), weir.Config{
			Retry:   retry.Config{MaxAttempts: 1},
			Breaker: breaker.Config{Consecutive: 1, Probes: 1},
			Throttle: throttle.Config{Classify: func(_ *http.Response, s headers.Signal) headers.Signal {
				s.Throttled = true
				return s
			}},
		}))(t)
		if _, err := rt.RoundTrip(get(t, "http://h/")); err == nil || rt.Circuits().State("h") != breaker.Open {
			t.Fatalf("%v, circuit %v", err, rt.Circuits().State("h"))
		}
		down = false
		time.Sleep(5 * time.Second)
		resp, err := rt.RoundTrip(get(t, "http://h/"))
		if err != nil || rt.Circuits().State("h") != breaker.Closed {
			t.Fatalf("%v, circuit %v", err, rt.Circuits().State("h"))
		}
		resp.Body.Close()
	})
}

// A 529 may have been executed, so a POST that gets one is not repeated, unless
// Classify calls it a refusal for quota.
func TestOverloadThatIsCalledQuotaIsRepeated(t *testing.T) {
	for _, tt := range []struct {
		kind headers.Kind
		want int // attempts
	}{{headers.Overload, 1}, {headers.Quota, 2}} {
		t.Run(fmt.Sprint(tt.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				base := testnet.Func(func(r *http.Request) (*http.Response, error) {
					r.Body.Close()
					if sent++; sent == 1 {
						return testnet.Answer(r, 529, nil, nil), nil
					}
					return testnet.Answer(r, 200, nil, nil), nil
				})
				rt, err := weir.New(base, weir.Config{Throttle: throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
					if resp.StatusCode == 529 {
						s.Kind = tt.kind
					}
					return s
				}}})
				if err != nil {
					t.Fatal(err)
				}
				resp, err := (&http.Client{Transport: rt}).Post("http://model.test/", "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if sent != tt.want {
					t.Errorf("%d attempts, want %d", sent, tt.want)
				}
			})
		})
	}
}
