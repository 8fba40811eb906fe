package chaintest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestAnyCompositionKeepsTheContract: some of our layers, once or twice, with others' code
// between any two, around a base that does what bases do: the caller's request
// is not changed, everybody sees it as the caller made it, whoever sends it has
// all of its body, an answer can be settled, and nothing is left open.
func TestAnyCompositionKeepsTheContract(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stack{T: t, random: rand.New(rand.NewPCG(seed, 3))}
				s.top = s.chain(testnet.Func(s.base))
				if s.random.IntN(3) == 0 {
					s.top = s.chain(s.top)
				}
				s.top = s.between(s.top)
				for i := range 6 {
					s.send([]string{"GET", "POST", "PUT"}[i%3])
				}
			})
		})
	}
}

// stack is what was composed. Everybody's functions look whether what they are
// given is sane.
type stack struct {
	*testing.T
	mu        sync.Mutex
	random    *rand.Rand
	top       http.RoundTripper
	throttles []*throttle.Transport
}

func (s *stack) send(method string) {
	ctx, cancel := context.WithTimeout(context.WithValue(s.Context(), valueKey{}, "caller"), time.Minute)
	r := must(http.NewRequestWithContext(ctx, method, "http://h/a/b?c", nil))(s)
	r.Header.Set("X-Of", "caller")
	body := testnet.NewBody("body")
	if method != "GET" {
		r.Body, r.ContentLength = body, 4
	}
	was, header, url := *r, r.Header.Clone(), *r.URL
	if resp, err := s.top.RoundTrip(r); err == nil {
		err := throttle.Settle(resp, throttle.Cost{"requests": 1})
		if resp.StatusCode < 400 && (err == nil) != (len(s.throttles) > 0) { // others may have been in hand
			s.Errorf("settled: %v", err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || len(b) != 2 {
			s.Errorf("answer %q, %v", b, err)
		}
		resp.Body.Close()
	}
	if !reflect.DeepEqual(was, *r) || !reflect.DeepEqual(header, r.Header) || !reflect.DeepEqual(url, *r.URL) || r.Context() != ctx {
		s.Errorf("the request was changed: %+v", r)
	}
	cancel()
	time.Sleep(time.Minute)
	if method != "GET" && body.Closes() == 0 {
		s.Error("the body is open")
	}
	for _, th := range s.throttles {
		for _, h := range th.Stats().Hosts {
			if h.InFlight != 0 || h.Queue != 0 {
				s.Errorf("left behind: %+v", h)
			}
		}
	}
}

// base answers, refuses, breaks and hangs.
func (s *stack) base(r *http.Request) (*http.Response, error) {
	s.sane("the base", r)
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if r.Context().Err() == nil && (err != nil || string(b) != "body") {
			s.Errorf("the base got %q, %v", b, err)
		}
	}
	s.mu.Lock()
	how, wait := s.random.IntN(12), time.Duration(s.random.IntN(250))*time.Millisecond
	s.mu.Unlock()
	if how == 0 {
		wait = time.Hour
	}
	if err := testnet.Wait(r.Context(), wait); err != nil {
		return nil, err
	}
	resp := testnet.Answer(r, 200, nil, testnet.NewBody("ok"))
	switch how {
	case 1:
		return nil, io.ErrUnexpectedEOF
	case 2:
		resp.StatusCode, resp.Header = 429, http.Header{"Retry-After": {"1"}}
	case 3:
		resp.StatusCode = 503
	case 4:
		resp.Request = nil
	case 5:
		resp.Request = r.Clone(context.WithValue(r.Context(), valueKey{}, "caller"))
	}
	return resp, nil
}

// sane looks at a request: the caller's, or one that was made with its context.
func (s *stack) sane(where string, r *http.Request) {
	of := r.Context().Value(valueKey{})
	if r.URL.Host == "token" && of == "nested" || r.URL.String() == "http://h/a/b?c" && of == "caller" && r.Header.Get("X-Of") == "caller" {
		return
	}
	s.Errorf("%s sees %s %v with %v, context of %v", where, r.Method, r.URL, r.Header, of)
}

// chain puts layers on top of rt.
func (s *stack) chain(rt http.RoundTripper) http.RoundTripper {
	say := func(where string) func(*http.Request) string {
		return func(r *http.Request) string { s.sane(where, r); return "" }
	}
	cs := must(breaker.NewCircuits(breaker.Config{Consecutive: -1, MinCalls: 1000, Shard: say("Shard")}))(s)
	for _, add := range []func(){
		func() { rt = retry.Wire(rt, retry.Config{}) },
		func() { rt = cs.Meter(rt) },
		func() {
			th := must(throttle.New(rt, throttle.Config{
				Default: throttle.MustParseBudget("1000/s, 50 in flight"), Partition: say("Partition"), Lane: say("Lane"),
				Cost: func(r *http.Request) throttle.Cost { s.sane("Cost", r); return throttle.Cost{"requests": 2} },
			}))(s)
			s.throttles, rt = append(s.throttles, th), th
		},
		func() {
			rt = must(retry.New(rt, retry.Config{
				BufferBody: 100, Hedge: retry.Hedge{After: 100 * time.Millisecond}, AttemptTimeout: 10 * time.Second,
				IdempotencyKey: func(r *http.Request) string { s.sane("IdempotencyKey", r); return "key" },
			}))(s)
		},
		func() { rt = cs.Door(rt) },
	} {
		if rt = s.between(rt); s.random.IntN(4) > 0 {
			add()
		}
	}
	return rt
}

type embedsRetry struct{ *retry.Transport }

func (e embedsRetry) RoundTrip(r *http.Request) (*http.Response, error) {
	return e.Transport.RoundTrip(r.Clone(r.Context()))
}

// between puts somebody's code on top of rt, or nothing.
func (s *stack) between(rt http.RoundTripper) http.RoundTripper {
	switch s.random.IntN(8) {
	case 0:
		return struct{ http.RoundTripper }{rt}
	case 1: // sends a copy, with more in its context
		return testnet.Func(func(r *http.Request) (*http.Response, error) {
			type own struct{}
			return rt.RoundTrip(r.Clone(context.WithValue(r.Context(), own{}, 1)))
		})
	case 2: // asks for a token first, from the top
		return testnet.Func(func(r *http.Request) (*http.Response, error) { s.nested(s.top, r); return rt.RoundTrip(r) })
	case 3: // or from here
		return testnet.Func(func(r *http.Request) (*http.Response, error) { s.nested(rt, r); return rt.RoundTrip(r) })
	case 4: // is a layer of ours for those above
		switch x := rt.(type) {
		case *throttle.Transport:
			return between{x, (*throttle.Transport).RoundTrip}
		case *retry.Transport:
			return embedsRetry{x}
		}
	}
	return rt
}

func (s *stack) nested(rt http.RoundTripper, r *http.Request) {
	if r.Context().Value(valueKey{}) == "nested" {
		return
	}
	q := get(s, "http://token/").WithContext(context.WithValue(r.Context(), valueKey{}, "nested"))
	if resp, err := rt.RoundTrip(q); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
