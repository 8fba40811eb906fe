package breaker_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

func TestOpensAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{})
		h := &host{answer: down}
		rt := cs.Door(cs.Meter(h))
		for range 5 {
			get(rt, "http://a.example/")
		}
		if got := cs.State("a.example"); got != breaker.Open {
			t.Fatalf("after five failures the circuit is %v", got)
		}
		_, err := get(rt, "http://a.example/")
		var e *breaker.Error
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
			want := breaker.HalfOpen
			if i == 2 {
				want = breaker.Closed
			}
			if got := cs.State("a.example"); got != want {
				t.Fatalf("after probe %d: %v, want %v", i, got, want)
			}
		}
	})
}

func TestPatienceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Patience: 10 * time.Second})
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
