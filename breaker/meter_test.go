package breaker_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
)

// A Door or Meter that stands alone does not claim that nothing was sent.
func TestAloneMarksSent(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	h := &host{answer: down}
	for name, rt := range map[string]http.RoundTripper{"door": cs.Door(h), "meter": cs.Meter(h)} {
		if _, err := get(rt, site); !errors.Is(err, errReset) || errors.Is(err, notsent.Err) {
			t.Errorf("%s: %v; want the base's error, which proves nothing", name, err)
		}
	}
}

// An answer whose judge panics is closed; one that is handed on is not.
func TestPanicOfClassifyClosesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("x")
		cs := circuits(t, breaker.Config{Classify: func(*http.Response, error) breaker.Outcome { panic("classify") }})
		rt := cs.Meter(&host{answer: func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 200, nil, body), nil }})
		func() {
			defer func() { recover() }()
			get(rt, site)
		}()
		if body.Closes() != 1 {
			t.Errorf("closed %d times", body.Closes())
		}
	})
}
