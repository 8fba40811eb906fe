package chaintest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// between is what a program makes of a throttle to send as it likes.
type between struct {
	*throttle.Transport
	send sender
}

func (b between) RoundTrip(r *http.Request) (*http.Response, error) { return b.send(b.Transport, r) }

type sender = func(*throttle.Transport, *http.Request) (*http.Response, error)

func twice(th *throttle.Transport, r *http.Request) (*http.Response, error) {
	if resp, err := th.RoundTrip(r); err == nil {
		resp.Body.Close()
	}
	return th.RoundTrip(r)
}

// TestCodeBetweenLayersMakesNoFalseNotSent: code between two layers may send a request more than
// once, under another context, or elsewhere. Even then no error claims that nothing was sent.
func TestCodeBetweenLayersMakesNoFalseNotSent(t *testing.T) {
	for name, send := range map[string]sender{
		"twice": twice,
		"two ways": func(th *throttle.Transport, r *http.Request) (*http.Response, error) {
			_, err := th.RoundTrip(r)
			_, _ = th.RoundTrip(r)
			return nil, err
		},
		"another context": func(th *throttle.Transport, r *http.Request) (*http.Response, error) {
			_, _ = th.RoundTrip(r.WithContext(context.Background()))
			return th.RoundTrip(r.WithContext(context.Background()))
		},
		"elsewhere": func(*throttle.Transport, *http.Request) (*http.Response, error) {
			return nil, io.ErrUnexpectedEOF
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				rt := aroundThrottle(t, send, func(r *http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
					}
					return nil, io.ErrUnexpectedEOF
				})
				_, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", nil))(t))
				if errors.Is(err, weir.ErrNotSent) {
					t.Errorf("%v after %d attempts claims that nothing was sent", err, n)
				}
				if n > 2 {
					t.Errorf("a POST that was sent was repeated: %d attempts, want at most 2", n)
				}
			})
		})
	}
}

// TestTheAnswerThatCodeBetweenLayersReturnsCounts: if code between two layers gets several
// answers, the one that it returns counts.
func TestTheAnswerThatCodeBetweenLayersReturnsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := aroundThrottle(t, twice, func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, nil, testnet.NewBody("later")), nil
			}
			return stub(r)
		})
		resp := must(rt.RoundTrip(must(http.NewRequest("POST", "http://h/", nil))(t)))(t)
		resp.Body.Close()
		if resp.StatusCode != 200 || n != 2 {
			t.Errorf("status %d after %d attempts, want 200 after 2", resp.StatusCode, n)
		}
	})
}

// TestWhatIsSentToAnotherHostKeepsToItsBudget: if code between two layers sends a request to
// another host than the caller named, the budget of that other host holds.
func TestWhatIsSentToAnotherHostKeepsToItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) { n++; return stub(r) })
		th := must(throttle.New(retry.Wire(base, retry.Config{}), throttle.Config{
			Budgets: map[string]throttle.Budget{"replica": throttle.MustParseBudget("2/m burst 2")}, MaxWait: -1,
		}))(t)
		rt := must(retry.New(between{th, func(th *throttle.Transport, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.URL.Host = "replica"
			return th.RoundTrip(r)
		}}, retry.Config{}))(t)
		for range 5 {
			if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
				resp.Body.Close()
			}
		}
		if n != 2 {
			t.Errorf("%d requests were sent, want the 2 of the budget", n)
		}
	})
}

// aroundThrottle is a retry over a throttle that somebody embeds.
func aroundThrottle(t *testing.T, send sender, base testnet.Func) http.RoundTripper {
	th := must(throttle.New(retry.Wire(base, retry.Config{}), throttle.Config{}))(t)
	return must(retry.New(between{th, send}, retry.Config{}))(t)
}

// TestAHedgeBelowOtherCodeHasATripOfItsOwn: layers below a hedge see a trip of its own, even if
// other code stands between. Whichever of the two attempts is cut off knows that it lost.
func TestAHedgeBelowOtherCodeHasATripOfItsOwn(t *testing.T) {
	pass := func(th *throttle.Transport, r *http.Request) (*http.Response, error) {
		return th.RoundTrip(r.WithContext(context.WithValue(r.Context(), valueKey{}, "between")))
	}
	for first := range 2 { // which of the two answers
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var trips []*trip.Trip
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				n := len(trips)
				trips = append(trips, trip.From(r.Context()))
				mu.Unlock()
				if n == first {
					time.Sleep(2 * time.Second)
					return stub(r)
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			th := must(throttle.New(retry.Wire(base, retry.Config{}), throttle.Config{}))(t)
			rt := must(retry.New(between{th, pass}, hedged()))(t)
			resp := must(rt.RoundTrip(get(t, "http://h/")))(t)
			if err := throttle.Settle(resp, nil); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			if len(trips) != 2 || trips[0].Hedge || !trips[1].Hedge || trips[0].Request != trips[1].Request {
				t.Fatalf("trips %+v, want one of the first attempt and one of its hedge, for the same request", trips)
			}
			if lost := trips[1-first].Cause(); lost != trip.LostHedge {
				t.Errorf("attempt %d was cut off for cause %d, want %d, a lost hedge", 1-first, lost, trip.LostHedge)
			}
		})
	}
}
