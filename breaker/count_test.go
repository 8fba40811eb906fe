package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
)

func TestServerErrorsOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(status(500))
		for range 20 {
			get(rt, site)
		}
		want(t, cs, breaker.Open, "20 times 500")
	})
}

func TestFourFailuresDoNotOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		for _, a := range []answer{status(500), down} {
			h.set(a)
			for range 4 {
				get(rt, site)
			}
			want(t, cs, breaker.Closed, "four failures")
			h.set(status(200))
			get(rt, site)
		}
	})
}

func TestThrottledAnswersDoNotOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		for _, a := range []answer{status(429), status(408), answerWith(503, "Retry-After", "1")} {
			h.set(a)
			for range 1000 {
				get(rt, site)
			}
			want(t, cs, breaker.Closed, "a thousand throttled answers")
		}
	})
}

func TestCancellationsDoNotOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
		}
		want(t, cs, breaker.Closed, "a hundred cancelled calls")
	})
}

// TestSlowFailuresCount has calls that outlast a window of 10 s, which
// weir.New would not allow: they count nevertheless.
func TestSlowFailuresCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Window: 10 * time.Second})
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return nil, errReset
		})
		for range 100 {
			go get(rt, site)
			time.Sleep(time.Second)
		}
		if n := cs.Stats().Circuits[0].Refused; n < 30 {
			t.Errorf("%d refused of 100", n)
		}
		time.Sleep(time.Minute)
	})
}

// TestConsecutiveFailuresOutlastTheWindow has one failure every 4 s in a window of 10 s.
func TestConsecutiveFailuresOutlastTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Window: 10 * time.Second})
		h.set(down)
		for range 5 {
			want(t, cs, breaker.Closed, "fewer than five")
			get(rt, site)
			time.Sleep(4 * time.Second)
		}
		want(t, cs, breaker.Open, "five in a row, 4 s apart")
	})
}
