package chaintest

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// A rule is one sentence of the RoundTripper contract, or one trap in it. It
// is checked for the whole chain and for each layer alone.
type rule struct {
	name   string
	check  func(t *testing.T, l layer)
	layers []string // nil: all
}

// A layer is the chain, or one of its rooms around a base.
type layer struct {
	name string
	wrap func(t testing.TB, base http.RoundTripper) http.RoundTripper
}

var looping = []string{"chain", "retry"}

func layers() []layer {
	return []layer{
		{"chain", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return must(weir.New(base, weir.Config{}))(t)
		}},
		{"retry", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return must(retry.New(base, retry.Config{}))(t)
		}},
		{"wire", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return retry.Wire(base, retry.Config{})
		}},
		{"throttle", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return must(throttle.New(base, throttle.Config{}))(t)
		}},
		{"door", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return must(breaker.NewCircuits(breaker.Config{}))(t).Door(base)
		}},
		{"meter", func(t testing.TB, base http.RoundTripper) http.RoundTripper {
			return must(breaker.NewCircuits(breaker.Config{}))(t).Meter(base)
		}},
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// check runs rules, each for each layer it is about, in virtual time. A
// goroutine left behind fails the bubble.
func check(t *testing.T, rules []rule) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, l := range layers() {
				if !concerns(rule, l.name) {
					continue
				}
				t.Run(l.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { rule.check(t, l) })
				})
			}
		})
	}
}

func concerns(r rule, layer string) bool {
	if r.layers == nil {
		return true
	}
	for _, l := range r.layers {
		if l == layer {
			return true
		}
	}
	return false
}

// stub is a base that answers every request with status 200 and "ok".
func stub(r *http.Request) (*http.Response, error) {
	return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
}

func TestTransportContract(t *testing.T) { check(t, contractRules()) }

func TestTransportBodies(t *testing.T) { check(t, bodyRules()) }

func TestTransportLoops(t *testing.T) { check(t, loopRules()) }

// TestTransportHTTP runs its rules over real HTTP/1.1 and HTTP/2.
func TestTransportHTTP(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		name := "HTTP1"
		if http2 {
			name = "HTTP2"
		}
		t.Run(name, func(t *testing.T) { check(t, httpRules(http2)) })
	}
}

func get(t testing.TB, url string) *http.Request {
	t.Helper()
	return must(http.NewRequest("GET", url, nil))(t)
}
