package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// Check votes on everything, errors included; its vote is necessary and not
// sufficient, and its error ends the request.
func TestCheckMayForbidAndNotAllow(t *testing.T) {
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
			resp, err := newTransport(t, s, retry.Config{Check: tt.check}).RoundTrip(request(t, tt.method, "http://a.example/", ""))
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
func TestDelayNeverShortensTheServersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var args []string
		delays := []time.Duration{-time.Hour, 5 * time.Second, time.Hour}
		c := retry.Config{MaxAttempts: 4, MaxDelay: 20 * time.Second, Delay: func(lo, hi time.Duration, n int, resp *http.Response) time.Duration {
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

// retryablehttp's own Backoff waits as it does there if it is given a minimum.
func TestDelayOfTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		newTransport(t, s, retry.Config{MaxAttempts: 4, MaxDelay: 3 * time.Second, Delay: func(_, most time.Duration, n int, resp *http.Response) time.Duration {
			return retryablehttp.DefaultBackoff(time.Second, most, n, resp)
		}}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if want := []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second}; !reflect.DeepEqual(s.times, want) {
			t.Errorf("got %v, want %v", s.times, want)
		}
	})
}

// The factory is called once for a request that is retried, and not for
// others: a BackOff has the state of one request.
func TestBackoffPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		c := retry.Config{MaxAttempts: 4, Backoff: func() backoff.BackOff {
			made++
			return &counting{}
		}}
		for i := 1; i <= 3; i++ {
			s := play(step{err: errReset})
			newTransport(t, s, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if want := []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second}; !reflect.DeepEqual(s.times, want) || made != i {
				t.Errorf("request %d: attempts at %v, %d factories called", i, s.times, made)
			}
		}
		newTransport(t, play(step{status: 200}), c).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if made != 3 {
			t.Error("the factory is called for a request that is not retried")
		}
	})
}

// counting is a BackOff of 1 s, 2 s, 3 s and so on.
type counting struct{ n time.Duration }

func (c *counting) Reset()                     { c.n = 0 }
func (c *counting) NextBackOff() time.Duration { c.n++; return c.n * time.Second }

// The default delay is uniform between 0 and 100 ms, 200 ms, ... 20 s.
func TestTheDefaultDelayIsUniform(t *testing.T) {
	limit := func(n int) time.Duration { return min(100*time.Millisecond<<n, 20*time.Second) }
	most := make([]time.Duration, 12)
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		rt := newTransport(t, s, retry.Config{MaxAttempts: len(most) + 1, Allowance: retry.Allowance{Disable: true}})
		for range 2000 {
			s.times = s.times[:0]
			rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			for n := range most {
				d := s.times[n+1] - s.times[n]
				if d < 0 || d > limit(n)+1 {
					t.Fatalf("delay %d is %v, want at most %v", n, d, limit(n))
				}
				most[n] = max(most[n], d)
			}
		}
	})
	for n, d := range most {
		if d < limit(n)*9/10 {
			t.Errorf("delay %d never came near %v in 2000 draws: %v", n, limit(n), d)
		}
	}
}

// With changes one request; SetHost the hosts of a pattern, from now on.
func TestWithChangesOneRequestSetHostAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 503})
		rt := newTransport(t, s, retry.Config{})
		attempts := func(o retry.Override, url string) int {
			before := s.calls()
			r := request(t, "GET", url, "")
			rt.RoundTrip(r.WithContext(retry.With(r.Context(), o)))
			return s.calls() - before
		}
		for _, tt := range []struct {
			o    retry.Override
			want int
		}{{retry.Override{}, 3}, {retry.Override{MaxAttempts: 5}, 5}, {retry.Override{MaxAttempts: 1}, 1}, {retry.Override{MaxAttempts: -1}, 1}, {retry.Override{AttemptTimeout: time.Second}, 3}} {
			if got := attempts(tt.o, "http://a.example/"); got != tt.want {
				t.Errorf("%+v: got %d attempts, want %d", tt.o, got, tt.want)
			}
		}
		for _, p := range []string{"*.b.example", "x.b.example", "127.0.0.1:8080"} {
			if err := rt.SetHost(p, retry.Config{MaxAttempts: len(strings.Split(p, "."))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.SetHost("x.b.example", retry.Config{MaxAttempts: 6}); err != nil { // replaces
			t.Fatal(err)
		}
		for url, want := range map[string]int{
			"http://a.example/": 3, "http://y.b.example/": 3, "http://X.B.Example.:80/": 6, "http://127.0.0.1:8080/": 4, "http://127.0.0.1:8081/": 3,
		} {
			if got := attempts(retry.Override{}, url); got != want {
				t.Errorf("%s: got %d attempts, want %d", url, got, want)
			}
		}
		for pattern, c := range map[string]retry.Config{"GET a.example": {}, "a.example/x": {}, "": {}, "a.example": {MaxAttempts: -1}} {
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
			attempt, _ := tr.Timeouts()
			limits = append(limits, attempt)
			return nil
		}}
		rt := newTransport(t, withTable{spy, table}, retry.Config{})
		hold := table.Acquire("first.example", time.Now()) // the only record there may be
		defer hold.Release()
		if err := rt.SetHost("b.example", retry.Config{AttemptTimeout: time.Second}); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a", "b", "a"} {
			rt.RoundTrip(request(t, "GET", "http://"+host+".example/", ""))
		}
		if want := []time.Duration{30 * time.Second, time.Second, 30 * time.Second}; !reflect.DeepEqual(limits, want) {
			t.Errorf("got %v, want %v", limits, want)
		}
		if st := rt.Stats(); hostIn(st, "*").Attempts != 3 {
			t.Errorf("stats %+v", st)
		}
	})
}

type withTable struct {
	*fakeLayer
	table *hosts.Table
}

// Settings given to a host later hold from its next request on.
func TestLaterSettingsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		rt := newTransport(t, s, retry.Config{})
		for i, attempts := range []int{2, 1, 3, 1} {
			if err := rt.SetHost("a.example", retry.Config{MaxAttempts: attempts}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				before := s.calls()
				resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if got := s.calls() - before; got != attempts {
					t.Errorf("settings %d: %d attempts, want %d", i, got, attempts)
				}
			}
		}
	})
}

func (w withTable) Link() trip.Link {
	k := w.fakeLayer.Link()
	k.Hosts = w.table
	return k
}
