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
