package breaker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
)

// Each test here is a mistake that some other breaker makes.

const site = "http://a.example/"

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// open makes the circuit of site open, and due for a probe.
func open(t *testing.T, cs *Circuits, h *host, rt http.RoundTripper) {
	t.Helper()
	h.set(down)
	for range 100 {
		if cs.State("a.example") == Open {
			break
		}
		get(rt, site)
	}
	due(t, cs)
}

// due sleeps until the open period has ended.
func due(t *testing.T, cs *Circuits) {
	t.Helper()
	for _, c := range cs.Stats().Circuits {
		if c.Host == "a.example" && c.State != Closed {
			time.Sleep(time.Until(c.NotBefore))
			return
		}
	}
	t.Fatal("the circuit is not open")
}

// plays does what a letter of a script stands for: the host answers well (g) or
// badly (b) or slowly (s) from now on, or refuses connections (r). It reports whether a call is
// to be made then; not after a dot, for which the open period has ended.
func (h *host) plays(t *testing.T, cs *Circuits, letter rune) bool {
	t.Helper()
	switch letter {
	case 'g':
		h.set(status(200))
	case 'b':
		h.set(status(500))
	case 's':
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return status(200)(r)
		})
	case 'r':
		h.set(down)
	case '.':
		due(t, cs)
		return false
	}
	return true
}

func rig(t *testing.T, c Config) (*Circuits, *host, http.RoundTripper) {
	cs := circuits(t, c)
	h := &host{answer: status(200)}
	return cs, h, cs.Door(cs.Meter(h))
}

func want(t *testing.T, cs *Circuits, s State, when string) {
	t.Helper()
	if got := cs.State("a.example"); got != s {
		t.Fatalf("%s: circuit is %v, want %v", when, got, s)
	}
}

func TestPeerServerErrorIsSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(status(500))
		for range 20 {
			get(rt, site)
		}
		want(t, cs, Open, "20 times 500")
	})
}

func TestPeerOneFailureOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		for _, a := range []answer{status(500), down} {
			h.set(a)
			for range 4 {
				get(rt, site)
			}
			want(t, cs, Closed, "four failures")
			h.set(status(200))
			get(rt, site)
		}
	})
}

func TestPeerThrottledAnswersOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		for _, a := range []answer{status(429), status(408), answerWith(503, "Retry-After", "1")} {
			h.set(a)
			for range 1000 {
				get(rt, site)
			}
			want(t, cs, Closed, "a thousand throttled answers")
		}
	})
}

func TestPeerCancellationOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
		}
		want(t, cs, Closed, "a hundred cancelled calls")
	})
}

// TestPeerSlowFailuresAreLost has calls that outlast a window of 10 s, which
// weir.New would not allow: they count nevertheless.
func TestPeerSlowFailuresAreLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
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

// TestPeerConsecutiveDecays has one failure every 4 s in a window of 10 s.
func TestPeerConsecutiveDecays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
		h.set(down)
		for range 5 {
			want(t, cs, Closed, "fewer than five")
			get(rt, site)
			time.Sleep(4 * time.Second)
		}
		want(t, cs, Open, "five in a row, 4 s apart")
	})
}

// TestPeerRefusalIsRetried: a refusal says of itself that it is one, also
// through the wrapping of the layer that made the trip.
func TestPeerRefusalIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		_, err := get(rt, site)
		if notsent.Refused(err) != notsent.Door || !errors.Is(err, notsent.Err) {
			t.Errorf("the Door's refusal: %#v", err)
		}
		_, err = get(cs.Meter(h), site)
		if notsent.Refused(err) != notsent.Meter || !errors.Is(err, notsent.Err) {
			t.Errorf("the Meter's refusal: %#v", err)
		}
	})
}

// TestPeerLockstep: circuits that open together do not probe together.
func TestPeerLockstep(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		d := jitter(time.Second, 0, time.Minute)
		if d < 800*time.Millisecond || d > 1200*time.Millisecond {
			t.Fatalf("%v", d)
		}
		seen[d] = true
		if d = jitter(time.Minute, 0, time.Minute); d < 48*time.Second || d > time.Minute {
			t.Fatalf("at the longest: %v", d)
		}
		if d = jitter(time.Second, 10*time.Second, time.Minute); d < 10*time.Second || d > 12*time.Second {
			t.Fatalf("with Retry-After: %v", d)
		}
		if d = jitter(time.Second, 1<<62, time.Minute); d != time.Minute {
			t.Fatalf("with a huge Retry-After: %v", d)
		}
	}
	if len(seen) < 90 {
		t.Errorf("%d different periods of 100", len(seen))
	}
}

func TestPeerIgnoresRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(answerWith(500, "Retry-After", "20"))
		for range 20 {
			get(rt, site)
		}
		_, err := get(rt, site)
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter < 20*time.Second || e.RetryAfter > 24*time.Second {
			t.Errorf("opened by Retry-After 20: %v", err)
		}
		due(t, cs)
		h.set(answerWith(503, "Retry-After", "30"))
		get(rt, site)
		want(t, cs, HalfOpen, "a probe was throttled")
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != 30*time.Second || e.State != HalfOpen {
			t.Errorf("probe answered Retry-After 30: %v", err)
		}
		h.set(answerWith(503, "Retry-After", "86400"))
		time.Sleep(30 * time.Second)
		get(rt, site)
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != time.Minute {
			t.Errorf("a day: %v", err)
		}
		_, h, rt = rig(t, Config{Consecutive: 1, Classify: func(*http.Response, error) Outcome { return Failure }})
		h.set(answerWith(429, "Retry-After", "20"))
		for range 4 {
			get(rt, site)
		}
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter < 20*time.Second {
			t.Errorf("429, classified as failure: %v", err)
		}
	})
}
