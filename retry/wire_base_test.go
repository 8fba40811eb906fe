package retry_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// TestHandedToTheBase: with timeouts and without, the base gets a copy of the
// caller's request whose context tells of the trip, and ends with an attempt that
// failed; what it says that it answered stays, and what it does not say is added.
func TestHandedToTheBase(t *testing.T) {
	for name, c := range map[string]retry.Config{"timeouts": {MaxAttempts: 1}, "none": {MaxAttempts: 1, AttemptTimeout: -1, StallTimeout: -1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "", func(t *testing.T) {
				other := request(t, "GET", "http://other.example/", "")
				var got *http.Request
				var answers *http.Request // what the answer says that it answers
				var fails error
				var tr *trip.Trip
				base := testnet.Func(func(r *http.Request) (*http.Response, error) {
					if got, tr = r, trip.From(r.Context()); fails != nil {
						return nil, fails
					}
					time.Sleep(time.Second)
					resp := testnet.Answer(r, 200, nil, nil)
					resp.Request = answers
					return resp, nil
				})
				var took time.Duration
				c.OnAttempt = func(a retry.Attempt) { took = a.Took }
				rt := newTransport(t, base, c)
				r := request(t, "GET", "http://a.example/", "")
				for _, answers = range []*http.Request{nil, other} {
					resp, err := rt.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					if got == r || tr == nil || trip.From(r.Context()) != nil {
						t.Errorf("the base got a copy: %v, with a trip: %v", got != r, tr != nil)
					}
					if want := answers; want == nil && resp.Request != got || want != nil && resp.Request != want {
						t.Errorf("answers %v", resp.Request)
					}
					if took != time.Second {
						t.Errorf("took %v", took)
					}
				}
				fails = errors.New("lost")
				if _, err := rt.RoundTrip(r); err == nil {
					t.Fatal("no error")
				}
				if ended := got.Context().Err() != nil; ended != (c.AttemptTimeout == 0) {
					t.Errorf("the attempt's context has ended: %v", ended)
				}
			})
		})
	}
}

// asked is a base that can be asked how long a request would wait.
type asked struct{ testnet.Func }

func (asked) Outlook(*http.Request) (time.Duration, error) { return time.Minute, context.Canceled }

// TestWireAsksItsBase: how long a request would wait is what the base says.
func TestWireAsksItsBase(t *testing.T) {
	w := retry.Wire(asked{stub()}, retry.Config{})
	r := request(t, "GET", "http://a.example/", "")
	wait, err := trip.Outlook(w, r)
	above := trip.NewOnward(w, trip.Retry, trip.Below(w).Hosts)
	tr, _ := above.Begin(r)
	ahead, aheadErr := above.Outlook(r, tr)
	if wait != time.Minute || err == nil || ahead != wait || aheadErr != err {
		t.Errorf("got %v, %v and %v, %v", wait, err, ahead, aheadErr)
	}
}
