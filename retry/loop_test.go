package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// The server's wait is a floor, in every form it is written in.
func TestServerWaitIsFloor(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		floor, most  time.Duration
	}{
		{"seconds", "Retry-After: 10", 10 * time.Second, 15 * time.Second},
		{"fraction", "Retry-After: 2.5", 2500 * time.Millisecond, 3750 * time.Millisecond},
		{"date", "Retry-After: Sat, 01 Jan 2000 00:00:20 GMT; Date: Sat, 01 Jan 2000 00:00:00 GMT", 20 * time.Second, 30 * time.Second},
		{"date of a clock that is an hour ahead", "Retry-After: Sat, 01 Jan 2000 01:00:20 GMT; Date: Sat, 01 Jan 2000 01:00:00 GMT", 20 * time.Second, 30 * time.Second},
		{"past date", "Retry-After: Sat, 01 Jan 1999 00:00:00 GMT", 0, 100 * time.Millisecond},
		{"zero", "Retry-After: 0", 0, 100 * time.Millisecond},
		{"negative", "Retry-After: -5", 0, 100 * time.Millisecond},
		{"none", "", 0, 100 * time.Millisecond},
		{"as long as may be", "Retry-After: 75", 75 * time.Second, 75 * time.Second},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s := play(step{status: 503, header: tt.header}, step{status: 200})
			resp, err := newTransport(t, s, Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil || resp.StatusCode != 200 || s.calls() != 2 {
				t.Fatalf("got %v, %v after %d attempts", resp, err, s.calls())
			}
			floor, most := tt.floor, max(tt.most, tt.floor+time.Second)
			if tt.floor == 0 || tt.floor == 75*time.Second {
				most = tt.most
			}
			if got := s.times[1]; got < floor || got > most {
				t.Errorf("second attempt after %v, want between %v and %v", got, floor, most)
			}
		})
	}
}

// What does not fit is answered at once, with the answer in hand, unread.
func TestNoRoomForDelay(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		deadline     time.Duration
		c            Config
		want         Reason
	}{
		{"beyond MaxDelay", "Retry-After: 76", 0, Config{}, TooLong},
		{"beyond a MaxDelay of one's own", "Retry-After: 6", 0, Config{MaxDelay: 5 * time.Second}, TooLong},
		{"huge", "Retry-After: 9223372036854775807", 0, Config{}, TooLong},
		{"overflowing", "Retry-After: 10000000000000000000000000", 0, Config{}, TooLong},
		{"beyond the deadline", "Retry-After: 10", 5 * time.Second, Config{}, NoTime},
		{"at the deadline", "Retry-After: 5", 5 * time.Second, Config{}, NoTime},
		{"backoff beyond the deadline", "", 5 * time.Second, Config{Backoff: fixed(6 * time.Second)}, NoTime},
		{"backoff says stop", "", 0, Config{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }}, Declined},
		{"no attempts", "Retry-After: 1", 0, Config{MaxAttempts: 1}, Exhausted},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			body := testnet.NewBody("sorry")
			s := play(step{status: 503, header: tt.header, body: body})
			var got Attempt
			tt.c.OnAttempt = func(a Attempt) { got = a }
			ctx := background()
			if tt.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				defer cancel()
			}
			start := time.Now()
			resp, err := newTransport(t, s, tt.c).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			if err != nil || resp.StatusCode != 503 {
				t.Fatalf("got %v, %v", resp, err)
			}
			if body.Reads() != 0 || body.Closes() != 0 || time.Since(start) != 0 {
				t.Errorf("%d reads, %d closes, %v", body.Reads(), body.Closes(), time.Since(start))
			}
			if got.Reason != tt.want || s.calls() != 1 {
				t.Errorf("got reason %q after %d attempts, want %q", got.Reason, s.calls(), tt.want)
			}
			if got := text(t, resp); got != "sorry" {
				t.Errorf("got body %q", got)
			}
		})
	}
}

// Jitter on top of a server's wait never reaches over the deadline or
// MaxDelay, and spreads.
func TestJitterFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[time.Duration]bool)
		for range 200 {
			ctx, cancel := context.WithTimeout(background(), 12*time.Second)
			s := play(step{status: 503, header: "Retry-After: 10"}, step{status: 200})
			resp, err := newTransport(t, s, Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("got %v, %v", resp, err)
			}
			if s.times[1] < 10*time.Second || s.times[1] >= 12*time.Second {
				t.Fatalf("second attempt after %v", s.times[1])
			}
			seen[s.times[1]] = true
			cancel()
		}
		if len(seen) == 0 {
			t.Error("no delays")
		}
	})
}

// The answer in hand is read and closed before the next attempt, and comes
// back with its bytes if nothing later brings a response.
func TestAnswerInHand(t *testing.T) {
	long := strings.Repeat("x", holdBytes)
	for _, tt := range []struct {
		name string
		body func() io.Reader
		want string // "": not kept
	}{
		{"short", func() io.Reader { return strings.NewReader("try later") }, "try later"},
		{"exactly 64 KiB", func() io.Reader { return strings.NewReader(long) }, long},
		{"a byte more", func() io.Reader { return strings.NewReader(long + "y") }, ""},
		{"slow", func() io.Reader {
			return io.MultiReader(strings.NewReader("half"), &slow{time.Second, strings.NewReader("rest")})
		}, ""},
		{"slow but in time", func() io.Reader { return &slow{30 * time.Millisecond, strings.NewReader("rest")} }, "rest"},
		{"broken", func() io.Reader { return io.MultiReader(strings.NewReader("half"), failing{}) }, ""},
	} {
		for _, end := range []struct {
			name string
			err  error
		}{{"refusal", &refusal{notsent.Throttle}}, {"reset", errReset}} {
			bubble(t, tt.name+", then "+end.name, func(t *testing.T) {
				body := testnet.BodyOf(tt.body())
				trailer := http.Header{"X-Sum": {"1"}}
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					if body.Closes() > 0 {
						return nil, end.err
					}
					resp := testnet.Answer(r, 503, nil, body)
					resp.Trailer = trailer
					return resp, nil
				})
				resp, err := newTransport(t, base, Config{MaxAttempts: 2, Backoff: fixed(0)}).RoundTrip(request(t, "GET", "http://a.example/", ""))
				if tt.want != "" {
					if err != nil || text(t, resp) != tt.want || resp.StatusCode != 503 || resp.Trailer.Get("X-Sum") != "1" {
						t.Errorf("got %v, %v", resp, err)
					}
					return
				}
				var e *Error
				if resp != nil || !errors.As(err, &e) || len(e.Tried) != 2 || e.Tried[0].Status != 503 || !errors.Is(err, end.err) {
					t.Fatalf("got %v, %v", resp, err)
				}
				if !strings.Contains(err.Error(), "503") || e.Host != "a.example" {
					t.Errorf("the error does not name the status: %v", err)
				}
			})
		}
	}
}

type slow struct {
	d time.Duration
	r io.Reader
}

func (s *slow) Read(b []byte) (int, error) { time.Sleep(s.d); return s.r.Read(b) }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errReset }

// Refusals of our own layers are never retried; the first one is returned as
// it is.
func TestRefusals(t *testing.T) {
	for _, by := range []notsent.By{notsent.Throttle, notsent.Door, notsent.Meter} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			layer := &fakeLayer{base: play(step{status: 200}), layer: trip.Meter, before: func(*http.Request, *trip.Trip) error {
				calls++
				return &refusal{by}
			}}
			rt := newTransport(t, layer, Config{Check: func(context.Context, *http.Response, error) (bool, error) { return true, nil }})
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

// ErrNotSent is claimed only for all attempts together.
func TestNotSent(t *testing.T) {
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
			_, err := newTransport(t, play(tt.steps...), Config{MaxAttempts: 2}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if got := errors.Is(&url.Error{Err: err}, notsent.Err); err == nil || got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
			var e *Error
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
		layer := &fakeLayer{base: Wire(s, Config{}), layer: trip.Throttle,
			outlook: func(*http.Request) (time.Duration, error) { return wait, nil },
			before:  func(_ *http.Request, tr *trip.Trip) error { time.Sleep(wait); tr.Waited += wait; return nil },
			after: func(resp *http.Response, tr *trip.Trip) {
				tr.Throttled, wait = resp.StatusCode == 429, 3*time.Second
			},
		}
		var seen []Attempt
		rt := newTransport(t, layer, Config{MaxAttempts: 2, OnAttempt: func(a Attempt) { seen = append(seen, a) }})
		resp, err := rt.RoundTrip(request(t, "POST", "http://a.example/", "body"))
		if err != nil || resp.StatusCode != 200 || s.calls() != 6 {
			t.Fatalf("got %v, %v after %d", resp, err, s.calls())
		}
		if time.Since(s.start) != 15*time.Second {
			t.Errorf("took %v, want the throttle's 15s and no delay", time.Since(s.start))
		}
		for i, a := range seen[:5] {
			if a.Reason != Queued || a.Delay != 0 || a.Outcome != Throttled || a.Number != i+1 || s.bodies[i] != "body" {
				t.Errorf("attempt %d: %+v with body %q", i+1, a, s.bodies[i])
			}
		}
		if seen[5].Waited != 15*time.Second || seen[5].Reason != Final {
			t.Errorf("last: %+v", seen[5])
		}
		if st := rt.Stats(); st.Hosts["a.example"].Allowance != 500 || st.Retries["throttled"] != 5 || st.Attempts != 6 {
			t.Errorf("stats: %+v", st)
		}
	})
}

// A throttle that says nothing of a wait and does not wait is not obeyed for
// ever, and without a throttle below the flag means nothing.
func TestThrottledWithoutWaitEnds(t *testing.T) {
	for _, layer := range []trip.Layer{trip.Throttle, trip.Meter} {
		synctest.Test(t, func(t *testing.T) {
			s := play(step{status: 429})
			f := &fakeLayer{base: Wire(s, Config{}), layer: layer, after: func(_ *http.Response, tr *trip.Trip) { tr.Throttled = true }}
			resp, err := newTransport(t, f, Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
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
		layer := &fakeLayer{base: Wire(play(step{status: 503, body: body}), Config{}), layer: trip.Throttle,
			outlook: func(r *http.Request) (time.Duration, error) {
				if trip.From(r.Context()) == nil {
					t.Error("asked without the trip")
				}
				return 0, &refusal{notsent.Door}
			}}
		rt := newTransport(t, layer, Config{})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || body.Reads() != 0 || text(t, resp) != "sorry" {
			t.Errorf("got %v, %v", resp, err)
		}
		if got := rt.Stats().Hosts["a.example"].Allowance; got != 500 {
			t.Errorf("allowance %v was touched", got)
		}
	})
}

// With Patience a running loop waits for its circuit; the attempt that was
// the circuit's probe costs nothing.
func TestWaitsForCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503}, step{status: 503}, step{status: 200})
		layer := &fakeLayer{base: Wire(s, Config{}), layer: trip.Meter,
			outlook: func(r *http.Request) (time.Duration, error) {
				trip.From(r.Context()).Held = time.Now()
				return 7 * time.Second, nil
			},
			after: func(_ *http.Response, tr *trip.Trip) { tr.Probe = true },
		}
		rt := newTransport(t, layer, Config{MaxAttempts: 2})
		resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 || !reflect.DeepEqual(s.times, []time.Duration{0, 7 * time.Second, 14 * time.Second}) {
			t.Errorf("got %v, %v at %v", resp, err, s.times)
		}
		if got := rt.Stats().Hosts["a.example"].Allowance; got != 500 {
			t.Errorf("probes cost %v", 500-got)
		}
	})
}

// A caller who leaves during a delay gets the context's error, with what was
// learned; a deadline that passes later, the answer in hand.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(background())
		time.AfterFunc(3*time.Second, cancel)
		s := play(step{status: 503, header: "Retry-After: 10"})
		_, err := newTransport(t, s, Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		var e *Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Tried[0].Status != 503 || e.Timeout() {
			t.Errorf("got %v", err)
		}
		if time.Since(s.start) != 3*time.Second {
			t.Errorf("took %v", time.Since(s.start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background(), 3*time.Second)
		defer cancel()
		calls := 0
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return testnet.Answer(r, 503, nil, testnet.NewBody("sorry")), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		resp, err := newTransport(t, base, Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		if err != nil || resp.StatusCode != 503 || text(t, resp) != "sorry" || calls != 2 {
			t.Errorf("got %v, %v", resp, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := request(t, "GET", "http://a.example/", "")
		r.Cancel = leave //lint:ignore SA1019 what old callers do
		time.AfterFunc(3*time.Second, func() { close(leave) })
		_, err := newTransport(t, play(step{err: errReset}), Config{Backoff: fixed(10 * time.Second)}).RoundTrip(r)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errReset) {
			t.Errorf("got %v", err)
		}
	})
}

// An error after a deadline is a timeout for those who ask, and both errors
// are found in it.
func TestErrorIsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return nil, errReset
			}
			<-r.Context().Done()
			return nil, errors.New("stream cancelled")
		})
		ctx, cancel := context.WithTimeout(background(), 3*time.Second)
		defer cancel()
		client := &http.Client{Transport: newTransport(t, base, Config{})}
		_, err := client.Do(request(t, "GET", "http://user:secret@a.example/?token=secret", "").WithContext(ctx))
		var u *url.Error
		var e *Error
		if !errors.As(err, &u) || !u.Timeout() || !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if e.Attempts != 2 || e.Reason != Ended || strings.Contains(e.Error(), "secret") {
			t.Errorf("got %+v", e)
		}
	})
}

// Check votes on everything, errors included; its vote is necessary and not
// sufficient, and its error ends the request.
func TestCheck(t *testing.T) {
	yes := func(context.Context, *http.Response, error) (bool, error) { return true, nil }
	no := func(context.Context, *http.Response, error) (bool, error) { return false, nil }
	bad := errors.New("enough")
	stop := func(context.Context, *http.Response, error) (bool, error) { return false, bad }
	for _, tt := range []struct {
		name   string
		check  retryablehttp.CheckRetry
		method string
		step   step
		want   int
	}{
		{"yes to a 404", yes, "GET", step{status: 404}, 3},
		{"yes to a 200", yes, "GET", step{status: 200}, 3},
		{"yes to a POST's 500", yes, "POST", step{status: 500}, 1},
		{"yes to a POST's 429", yes, "POST", step{status: 429}, 3},
		{"yes, but the server says no", yes, "GET", step{status: 500, header: "X-Should-Retry: false"}, 1},
		{"yes to what cannot work", yes, "GET", step{err: errors.New("http: no Host in request URL")}, 1},
		{"no to a 503", no, "GET", step{status: 503}, 1},
		{"error", stop, "GET", step{status: 503}, 1},
		{"the library's own, 503", retryablehttp.DefaultRetryPolicy, "GET", step{status: 503}, 3},
		{"the library's own, 501", retryablehttp.ErrorPropagatedRetryPolicy, "GET", step{status: 501}, 1},
		{"the library's own, 500 of a POST", retryablehttp.ErrorPropagatedRetryPolicy, "POST", step{status: 500}, 1},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			body := testnet.NewBody("x")
			tt.step.body = body
			s := play(tt.step)
			resp, err := newTransport(t, s, Config{Check: tt.check}).RoundTrip(request(t, tt.method, "http://a.example/", ""))
			if s.calls() != tt.want {
				t.Errorf("got %d attempts, want %d", s.calls(), tt.want)
			}
			if tt.name == "error" && (err != bad || body.Closes() == 0) || tt.name != "error" && tt.step.err == nil && resp == nil {
				t.Errorf("got %v, %v", resp, err)
			}
		})
	}
}

// Delay is called with 0 and MaxDelay and attempts from 0; what it returns is
// clamped, and never shortens the server's wait.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var args []string
		delays := []time.Duration{-time.Hour, 5 * time.Second, time.Hour}
		c := Config{MaxAttempts: 4, MaxDelay: 20 * time.Second, Delay: func(lo, hi time.Duration, n int, resp *http.Response) time.Duration {
			args = append(args, fmt.Sprint(lo, hi, n, resp.StatusCode))
			return delays[n]
		}}
		s := play(step{status: 503}, step{status: 503}, step{status: 503}, step{status: 200})
		if resp, err := newTransport(t, s, c).RoundTrip(request(t, "GET", "http://a.example/", "")); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if want := []time.Duration{0, 0, 5 * time.Second, 25 * time.Second}; !reflect.DeepEqual(s.times, want) {
			t.Errorf("got %v, want %v", s.times, want)
		}
		if want := []string{"0s 20s 0 503", "0s 20s 1 503", "0s 20s 2 503"}; !reflect.DeepEqual(args, want) {
			t.Errorf("got %q, want %q", args, want)
		}
		s = play(step{status: 503, header: "Retry-After: 10"}, step{status: 200})
		c.Delay = func(time.Duration, time.Duration, int, *http.Response) time.Duration { return time.Second }
		newTransport(t, s, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if s.times[1] < 10*time.Second {
			t.Errorf("second attempt after %v, the server asked for 10s", s.times[1])
		}
	})
}

// The default delay is uniform between 0 and 100 ms, 200 ms, ... 20 s.
func TestFullJitter(t *testing.T) {
	most := make([]time.Duration, 12)
	for range 2000 {
		b := fullJitter()
		b.Reset()
		for n := range most {
			d := b.NextBackOff()
			limit := min(baseDelay<<n, capDelay)
			if d < 0 || d > limit+1 {
				t.Fatalf("delay %d is %v, want at most %v", n, d, limit)
			}
			most[n] = max(most[n], d)
		}
	}
	for n, d := range most {
		if limit := min(baseDelay<<n, capDelay); d < limit*9/10 {
			t.Errorf("delay %d never came near %v in 2000 draws: %v", n, limit, d)
		}
	}
}

// With changes one request; SetHost the hosts of a pattern, from now on.
func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503})
		rt := newTransport(t, s, Config{})
		attempts := func(o Override, url string) int {
			before := s.calls()
			r := request(t, "GET", url, "")
			rt.RoundTrip(r.WithContext(With(r.Context(), o)))
			return s.calls() - before
		}
		for _, tt := range []struct {
			o    Override
			want int
		}{{Override{}, 3}, {Override{MaxAttempts: 5}, 5}, {Override{MaxAttempts: 1}, 1}, {Override{MaxAttempts: -1}, 1}, {Override{AttemptTimeout: time.Second}, 3}} {
			if got := attempts(tt.o, "http://a.example/"); got != tt.want {
				t.Errorf("%+v: got %d attempts, want %d", tt.o, got, tt.want)
			}
		}
		for _, p := range []string{"*.b.example", "x.b.example", "127.0.0.1:8080"} {
			if err := rt.SetHost(p, Config{MaxAttempts: len(strings.Split(p, "."))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.SetHost("x.b.example", Config{MaxAttempts: 6}); err != nil { // replaces
			t.Fatal(err)
		}
		for url, want := range map[string]int{
			"http://a.example/": 3, "http://y.b.example/": 3, "http://X.B.Example.:80/": 6, "http://127.0.0.1:8080/": 4, "http://127.0.0.1:8081/": 3,
		} {
			if got := attempts(Override{}, url); got != want {
				t.Errorf("%s: got %d attempts, want %d", url, got, want)
			}
		}
		for pattern, c := range map[string]Config{"GET a.example": {}, "a.example/x": {}, "": {}, "a.example": {MaxAttempts: -1}} {
			if err := rt.SetHost(pattern, c); err == nil {
				t.Errorf("SetHost(%q, %+v) is accepted", pattern, c)
			}
		}
	})
}

// The settings of a host reach Wire through the trip, even behind a host for
// which there is no record left.
func TestHostSettingsOnOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Duration
		table := hosts.New(1)
		spy := &fakeLayer{base: play(step{status: 200}), layer: trip.Wire, before: func(_ *http.Request, tr *trip.Trip) error {
			limits = append(limits, tr.AttemptTimeout)
			return nil
		}}
		rt := newTransport(t, withTable{spy, table}, Config{})
		hold := table.Acquire("first.example", time.Now()) // the only record there may be
		defer hold.Release()
		if err := rt.SetHost("b.example", Config{AttemptTimeout: time.Second}); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a", "b", "a"} {
			rt.RoundTrip(request(t, "GET", "http://"+host+".example/", ""))
		}
		if want := []time.Duration{30 * time.Second, time.Second, 30 * time.Second}; !reflect.DeepEqual(limits, want) {
			t.Errorf("got %v, want %v", limits, want)
		}
		if st := rt.Stats(); st.Hosts["*"].Attempts != 3 {
			t.Errorf("stats %+v", st)
		}
	})
}

type withTable struct {
	*fakeLayer
	table *hosts.Table
}

func (w withTable) Link() trip.Link {
	k := w.fakeLayer.Link()
	k.Hosts = w.table
	return k
}
