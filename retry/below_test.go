package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// Refusals of our own layers are never retried; the first one is returned as
// it is.
func TestRefusalsOfOurLayersAreNotRetried(t *testing.T) {
	for _, by := range []notsent.By{notsent.Throttle, notsent.Door, notsent.Meter} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			layer := &fakeLayer{base: retry.Wire(play(step{status: 200}), retry.Config{}), layer: trip.Meter, before: func(*http.Request, *trip.Trip) error {
				calls++
				return &refusal{by}
			}}
			rt := newTransport(t, layer, retry.Config{Check: yes})
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if _, ok := errors.Unwrap(err).(*refusal); !ok || calls != 1 || !errors.Is(err, notsent.Err) {
				t.Errorf("got %T %v after %d calls", err, err, calls)
			}
			if n := rt.Stats().Attempts; n != 0 {
				t.Errorf("a refusal counts as %d attempts", n)
			}
		})
	}
}

// A retry that was refused is paid back: nothing was sent.
func TestRefusedRetryIsPaidBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := &fakeLayer{base: retry.Wire(play(step{status: 503}), retry.Config{}), layer: trip.Throttle, before: func(_ *http.Request, tr *trip.Trip) error {
			if tr.Number > 1 {
				return &refusal{notsent.Throttle}
			}
			return nil
		}}
		rt := newTransport(t, layer, retry.Config{Backoff: fixed(0)})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 503 {
			t.Errorf("got %v, %v", resp, err)
		}
		if got := hostIn(rt.Stats(), "a.example").Allowance; got != 500 {
			t.Errorf("allowance %v", got)
		}
	})
}

// ErrNotSent is claimed only for all attempts together.
func TestErrNotSentIsClaimedForAllAttemptsTogether(t *testing.T) {
	dial := step{err: fmt.Errorf("base: %w", &dialError)}
	for _, tt := range []struct {
		name  string
		steps []step
		want  bool
	}{
		{"dial, dial", []step{dial, dial}, true},
		{"reset, dial", []step{{err: errReset}, dial}, false},
		{"dial, reset", []step{dial, {err: errReset}}, false},
		{"reset, inner claim", []step{{err: errReset}, {err: notsent.Wrap(errReset)}}, false},
		{"inner claim, inner claim", []step{{err: notsent.Wrap(errReset)}, {err: notsent.Wrap(errReset)}}, true},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			_, err := newTransport(t, play(tt.steps...), retry.Config{MaxAttempts: 2}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if got := errors.Is(&url.Error{Err: err}, notsent.Err); err == nil || got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
			var e *retry.Error
			if !errors.As(err, &e) || e.Attempts != 2 {
				t.Errorf("got %v, want 2 attempts", err)
			}
		})
	}
}

// A throttled answer goes back in line at once: no attempt, no allowance and
// no delay, as often as the throttle takes it.
func TestThrottledGoesBackInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 429, header: "Retry-After: 10"}, step{status: 429}, step{status: 429}, step{status: 429}, step{status: 429}, step{status: 200})
		wait := time.Duration(0)
		layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Throttle,
			outlook: func(*http.Request) (time.Duration, error) { return wait, nil },
			before:  func(_ *http.Request, tr *trip.Trip) error { time.Sleep(wait); tr.Wait(wait); return nil },
			after: func(resp *http.Response, tr *trip.Trip) {
				tr.Throttled, wait = resp.StatusCode == 429, 3*time.Second
			},
		}
		var seen []retry.Attempt
		rt := newTransport(t, layer, retry.Config{MaxAttempts: 2, OnAttempt: func(a retry.Attempt) { seen = append(seen, a) }})
		resp, err := rt.RoundTrip(request(t, "POST", "http://a.example/", "body"))
		if err != nil || resp.StatusCode != 200 || s.calls() != 6 {
			t.Fatalf("got %v, %v after %d", resp, err, s.calls())
		}
		if time.Since(s.start) != 15*time.Second {
			t.Errorf("took %v, want the throttle's 15s and no delay", time.Since(s.start))
		}
		for i, a := range seen[:5] {
			if a.Reason != retry.Queued || a.Delay != 0 || a.Outcome != retry.Throttled || a.Number != i+1 || s.bodies[i] != "body" {
				t.Errorf("attempt %d: %+v with body %q", i+1, a, s.bodies[i])
			}
		}
		if seen[5].Waited != 15*time.Second || seen[5].Reason != retry.Final {
			t.Errorf("last: %+v", seen[5])
		}
		if st := rt.Stats(); hostIn(st, "a.example").Allowance != 500 || st.Retries["throttled"] != 5 || st.Attempts != 6 || st.Requests != 1 {
			t.Errorf("stats: %+v", st)
		}
	})
}

// A 503 that the throttle waits out is no proof that nothing was processed.
func TestThrottled503OfPOST(t *testing.T) {
	for method, want := range map[string]int{"POST": 1, "PUT": 2} {
		synctest.Test(t, func(t *testing.T) {
			s := play(step{status: 503, header: "Retry-After: 1"}, step{status: 200})
			layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Throttle,
				after: func(resp *http.Response, tr *trip.Trip) { tr.Throttled = resp.StatusCode == 503 }}
			newTransport(t, layer, retry.Config{MaxAttempts: 2}).RoundTrip(request(t, method, "http://a.example/", ""))
			if s.calls() != want {
				t.Errorf("%s: got %d attempts, want %d", method, s.calls(), want)
			}
		})
	}
}

// A throttle that says nothing of a wait and does not wait is not obeyed for
// ever, and without a throttle below the flag means nothing.
func TestThrottledWithoutWaitEnds(t *testing.T) {
	for _, layer := range []trip.Layer{trip.Throttle, trip.Meter} {
		synctest.Test(t, func(t *testing.T) {
			s := play(step{status: 429})
			f := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: layer, after: func(_ *http.Response, tr *trip.Trip) { tr.Throttled = true }}
			resp, err := newTransport(t, f, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			want := 3
			if layer == trip.Throttle {
				want += maxFree
			}
			if err != nil || resp.StatusCode != 429 || s.calls() != want {
				t.Errorf("got %v, %v after %d attempts, want %d", resp, err, s.calls(), want)
			}
		})
	}
}

// Before a delay the layers below are asked; their refusal returns the answer
// in hand, unread and at once.
func TestOutlookRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("sorry")
		layer := &fakeLayer{base: retry.Wire(play(step{status: 503, body: body}), retry.Config{}), layer: trip.Throttle,
			outlook: func(r *http.Request) (time.Duration, error) {
				if trip.From(r.Context()) == nil {
					t.Error("asked without the trip")
				}
				return 0, &refusal{notsent.Door}
			}}
		rt := newTransport(t, layer, retry.Config{})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || body.Reads() != 0 || text(t, resp) != "sorry" {
			t.Errorf("got %v, %v", resp, err)
		}
		if got := hostIn(rt.Stats(), "a.example").Allowance; got != 500 {
			t.Errorf("allowance %v was touched", got)
		}
	})
}

// With Patience a running loop waits for its circuit, and the attempt that
// follows costs nothing.
func TestWaitsForCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503}, step{status: 503}, step{status: 200})
		layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Meter,
			outlook: func(r *http.Request) (time.Duration, error) {
				trip.From(r.Context()).Patience = trip.Patient
				return 7 * time.Second, nil
			},
		}
		rt := newTransport(t, layer, retry.Config{MaxAttempts: 2})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 || !reflect.DeepEqual(s.times, []time.Duration{0, 7 * time.Second, 14 * time.Second}) {
			t.Errorf("got %v, %v at %v", resp, err, s.times)
		}
		if got := hostIn(rt.Stats(), "a.example").Allowance; got != 500 {
			t.Errorf("probes cost %v", 500-got)
		}
	})
}

// A loop also waits where the host may be well, but then its attempts count.
func TestWaitsForADoubtfulCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503}, step{status: 503}, step{status: 200})
		layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Meter,
			outlook: func(r *http.Request) (time.Duration, error) {
				trip.From(r.Context()).Patience = trip.Doubtful
				return 7 * time.Second, nil
			},
		}
		var last retry.Attempt
		rt := newTransport(t, layer, retry.Config{MaxAttempts: 2, OnAttempt: func(a retry.Attempt) { last = a }})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 503 || !reflect.DeepEqual(s.times, []time.Duration{0, 7 * time.Second}) {
			t.Errorf("got %v, %v at %v", resp, err, s.times)
		}
		if last.Reason != retry.Exhausted {
			t.Errorf("the last attempt ended with reason %q, want %q", last.Reason, retry.Exhausted)
		}
	})
}

// The server's own wait rules where it is longer than the circuit's.
func TestServersWaitBeforeCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503, header: "Retry-After: 3"}, step{status: 200})
		layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Meter,
			outlook: func(r *http.Request) (time.Duration, error) {
				trip.From(r.Context()).Patience = trip.Patient
				return time.Second, nil
			},
		}
		rt := newTransport(t, layer, retry.Config{MaxAttempts: 2})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 || len(s.times) != 2 || s.times[1] < 3*time.Second {
			t.Errorf("got %v, %v at %v", resp, err, s.times)
		}
	})
}

// Where only the deadline keeps a request from another attempt, its error is
// the deadline's as well, whoever says that there is no time.
func TestNoTimeIsDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		delay   time.Duration
		outlook error
	}{
		"delay":                   {delay: 6 * time.Second},
		"a wait in a layer below": {outlook: fmt.Errorf("the wait is too long: %w", context.DeadlineExceeded)},
	} {
		bubble(t, name, func(t *testing.T) {
			s := play(step{err: errReset})
			layer := &fakeLayer{base: retry.Wire(s, retry.Config{}), layer: trip.Throttle, outlook: func(*http.Request) (time.Duration, error) {
				return 0, tt.outlook
			}}
			ctx, cancel := context.WithTimeout(background(), 5*time.Second)
			defer cancel()
			client := &http.Client{Transport: newTransport(t, layer, retry.Config{Backoff: fixed(tt.delay)})}
			_, err := client.Do(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			var u *url.Error
			var e *retry.Error
			if !errors.As(err, &u) || !errors.As(err, &e) || e.Reason != retry.NoTime || e.Attempts != 1 || s.calls() != 1 {
				t.Fatalf("got %v after %d attempts", err, s.calls())
			}
			if !u.Timeout() || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errReset) {
				t.Errorf("timeout %t, deadline %t: %v", u.Timeout(), errors.Is(err, context.DeadlineExceeded), err)
			}
		})
	}
}

// Wire hands on what a layer below it says about waiting.
func TestWireAsksBelow(t *testing.T) {
	layer := &fakeLayer{base: play(step{status: 200}), layer: trip.Meter,
		outlook: func(*http.Request) (time.Duration, error) { return time.Minute, errReset }}
	wait, err := trip.Outlook(retry.Wire(layer, retry.Config{}), request(t, "GET", "http://a.example/", ""))
	if wait != time.Minute || err != errReset {
		t.Errorf("got %v, %v; the layer below said 1m0s and an error", wait, err)
	}
}

// An answer in hand that says that a POST was refused is not returned if a later
// attempt may have been processed: its caller might repeat it.
func TestAnswerInHandAndNotTheLast(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		last   step
		leave  time.Duration
		want   int // status; 0: the last attempt's error
	}{
		"broken":                   {"POST", step{err: errReset}, 0, 0},
		"broken, and may be twice": {"PUT", step{err: errReset}, 0, 429},
		"not sent":                 {"POST", step{err: &dialError}, 0, 429},
		"deadline":                 {"POST", step{}, time.Minute, 0},
		"deadline, may be twice":   {"GET", step{}, time.Minute, 429},
		"timeout":                  {"POST", step{}, 0, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			s := play(step{status: 429, body: testnet.NewBody("later")}, tt.last)
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if s.calls() > 0 && tt.last == (step{}) {
					r.Body.Close()
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return s.RoundTrip(r)
			})
			ctx := background()
			if tt.leave > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.leave)
				defer cancel()
			}
			resp, err := newTransport(t, base, retry.Config{MaxAttempts: 2, AttemptTimeout: 2 * time.Minute}).RoundTrip(request(t, tt.method, "http://a.example/", "body").WithContext(ctx))
			var e *retry.Error
			switch {
			case tt.want == 0 && (!errors.As(err, &e) || e.Attempts != 2 || e.Tried[0].Status != 429 || errors.Is(err, notsent.Err)):
				t.Errorf("got %v, %v", resp, err)
			case tt.want != 0 && (err != nil || resp.StatusCode != tt.want || text(t, resp) != "later"):
				t.Errorf("got %v, %v, want the answer in hand", resp, err)
			}
		})
	}
}
