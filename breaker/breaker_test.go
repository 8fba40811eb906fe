package breaker

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

const site = "http://a.example/"

// host is a base that answers as told.
type host struct {
	calls  atomic.Int64
	answer answer // changed by set only
	mu     sync.Mutex
}

type answer func(r *http.Request) (*http.Response, error)

func (h *host) set(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = a
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.calls.Add(1)
	h.mu.Lock()
	a := h.answer
	h.mu.Unlock()
	return a(r)
}

var errReset = errors.New("connection reset by peer")

func down(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, errReset
}

func status(code int) answer {
	return func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, code, nil, nil), nil }
}

func circuits(t testing.TB, c Config) *Circuits {
	t.Helper()
	cs, err := NewCircuits(c)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func get(rt http.RoundTripper, url string) (int, error) {
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", url, nil))
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func TestOpensAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, Config{})
		h := &host{answer: down}
		rt := cs.Door(cs.Meter(h))
		for range 5 {
			get(rt, "http://a.example/")
		}
		if got := cs.State("a.example"); got != Open {
			t.Fatalf("after five failures the circuit is %v", got)
		}
		_, err := get(rt, "http://a.example/")
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 || h.calls.Load() != 5 {
			t.Fatalf("open: got %v after %d calls", err, h.calls.Load())
		}
		if code, err := get(rt, "http://b.example/"); code != 0 || !errors.Is(err, errReset) {
			t.Fatalf("another host: %v", err)
		}
		h.set(status(200))
		time.Sleep(5 * time.Second)
		for i := range 3 {
			if code, err := get(rt, "http://a.example/"); code != 200 {
				t.Fatalf("probe %d: %v", i, err)
			}
			want := HalfOpen
			if i == 2 {
				want = Closed
			}
			if got := cs.State("a.example"); got != want {
				t.Fatalf("after probe %d: %v, want %v", i, got, want)
			}
		}
	})
}

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

// tableOf returns the table of hosts in which a chain keeps its records.
func tableOf(rt http.RoundTripper) *hosts.Table { return rt.(trip.Linked).Link().Hosts }

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

func TestPatienceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, Config{Patience: 10 * time.Second})
		h := &host{answer: down}
		rt := cs.Door(cs.Meter(h))
		for range 5 {
			get(rt, "http://a.example/")
		}
		h.set(status(200))
		done := make(chan string, 100)
		for range 100 {
			go func() {
				code, err := get(rt, "http://a.example/")
				if err != nil {
					done <- err.Error()
				} else {
					done <- strconv.Itoa(code)
				}
			}()
		}
		for range 100 {
			if got := <-done; got != "200" {
				t.Error(got)
			}
		}
	})
}
