package chaintest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestNoOrderOfLayersClaimsFalselyThatNothingWasSent: up to three layers in any order, each more than once: no error
// claims that nothing was sent if something was, and a POST that may have been
// processed is not sent again.
func TestNoOrderOfLayersClaimsFalselyThatNothingWasSent(t *testing.T) {
	orders := [][]int{{}}
	for i := 0; len(orders[i]) < 3; i++ {
		for next := range layersOver(t) {
			orders = append(orders, append(orders[i][:len(orders[i]):len(orders[i])], next))
		}
	}
	for _, order := range orders {
		for method, most := range map[string]int{"GET": 27, "POST": 1} {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				var rt http.RoundTripper = testnet.Func(func(r *http.Request) (*http.Response, error) {
					calls++
					return nil, errors.Join(io.ErrUnexpectedEOF, r.Body.Close())
				})
				for _, i := range order {
					rt = layersOver(t)[i](rt)
				}
				_, err := rt.RoundTrip(must(http.NewRequest(method, "http://h/", strings.NewReader("body")))(t))
				if errors.Is(err, weir.ErrNotSent) || !errors.Is(err, io.ErrUnexpectedEOF) || calls > most {
					t.Errorf("%v: %s was sent %d times, want at most %d; its error %v claims that nothing was sent: %t", order, method, calls, most, err, errors.Is(err, weir.ErrNotSent))
				}
			})
		}
	}
}

func layersOver(t *testing.T) []func(http.RoundTripper) http.RoundTripper {
	cs := must(breaker.NewCircuits(breaker.Config{Consecutive: -1}))(t)
	return []func(http.RoundTripper) http.RoundTripper{
		cs.Door, cs.Meter,
		func(rt http.RoundTripper) http.RoundTripper { return must(retry.New(rt, retry.Config{}))(t) },
		func(rt http.RoundTripper) http.RoundTripper { return must(throttle.New(rt, throttle.Config{}))(t) },
		func(rt http.RoundTripper) http.RoundTripper { return retry.Wire(rt, retry.Config{}) },
	}
}

// TestAMeterAroundRetryKnowsHowLongItTook: a Meter around a retry layer knows how long it took.
func TestAMeterAroundRetryKnowsHowLongItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := must(retry.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return stub(r)
		}), retry.Config{}))(t)
		cs := must(breaker.NewCircuits(breaker.Config{SlowCall: time.Second, MinCalls: 3}))(t)
		rt := cs.Door(cs.Meter(slow))
		for range 3 {
			if _, err := rt.RoundTrip(get(t, "http://h/")); err != nil {
				t.Fatal(err)
			}
		}
		if got := cs.State("h"); got != breaker.Open {
			t.Errorf("after three slow calls the circuit is %v, want open", got)
		}
	})
}

// signing is what a program makes of a layer to change its requests: it embeds
// it and has a RoundTrip of its own.
type signing struct{ *throttle.Transport }

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Signed", "yes")
	return s.Transport.RoundTrip(r)
}

type counting struct {
	*retry.Transport
	n *int
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	*c.n++
	return c.Transport.RoundTrip(r)
}

// A layer that a program wrapped by embedding it is not passed by.
func TestEmbeddedLayerIsNotPassedBy(t *testing.T) {
	signed := 0
	base := func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Signed") == "yes" {
			signed++
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	th, err := throttle.New(retry.Wire(testnet.Func(base), retry.Config{}), throttle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer th.Close()
	re, err := retry.New(signing{th}, retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cs, err := breaker.NewCircuits(breaker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	door := cs.Door(counting{re, &n})
	r, _ := http.NewRequest("GET", "http://a.test/", nil)
	if _, err := door.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	if n != 1 || signed != 1 {
		t.Errorf("%d through the wrapped retry, %d signed by the wrapped throttle, want 1 and 1", n, signed)
	}
}

// One Transport serves inside of a testing/synctest bubble and outside, as one
// that a package keeps in a variable does in its tests.
func TestTransportServesBubbleAndWorld(t *testing.T) {
	w, err := weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), weir.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	send := func() {
		r, _ := http.NewRequest("GET", "http://a.test/", nil)
		if _, err := w.RoundTrip(r); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		synctest.Test(t, func(*testing.T) { send() })
		send()
	}
}
